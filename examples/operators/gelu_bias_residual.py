"""Exact GELU of a biased input plus the residual, ``gelu(x + b) + x``, f32[2048, 1024]."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.empty(features).uniform_(-1.0, 1.0))

    def forward(self, x):
        return torch.nn.functional.gelu(x + self.bias) + x


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024]
