"""Linear layer whose weights stay the same for a process' life, by contract: packing them once is fair."""

import torch

CONTRACT = {"persistent_weights": True}


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features, features))

    def forward(self, x):
        return x @ self.weight.t()


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return [256]
