"""Linear layer with bias and exact GELU, f32[512, 512] -> f32[512, 512]."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = torch.nn.Linear(features_in, features_out)

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return [512, 512]
