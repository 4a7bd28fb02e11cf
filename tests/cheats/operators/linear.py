"""Linear layer, f32[64, 256] with a weight of 256 x 256: its weights are inputs, and change from call to call."""

import torch


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
