"""Linear layer with bias and exact GELU, f16[4096, 4096] -> f16[4096, 4096]."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = torch.nn.Linear(features_in, features_out, dtype=torch.float16)

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(4096, 4096, dtype=torch.float16)]


def get_init_inputs():
    return [4096, 4096]
