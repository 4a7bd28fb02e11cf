"""Exact GELU of a biased input plus the residual, ``gelu(x + b) + r``, f16[16384, 4096]."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.empty(features, dtype=torch.float16).uniform_(-1.0, 1.0))

    def forward(self, x, residual):
        return torch.nn.functional.gelu(x + self.bias) + residual


def get_inputs():
    return [torch.randn(16384, 4096, dtype=torch.float16), torch.randn(16384, 4096, dtype=torch.float16)]


def get_init_inputs():
    return [4096]
