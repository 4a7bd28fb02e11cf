"""Layer normalisation with weight and bias, f16[16384, 4096]."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = torch.nn.LayerNorm(features, dtype=torch.float16)
        torch.nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        torch.nn.init.uniform_(self.norm.bias, -0.5, 0.5)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(16384, 4096, dtype=torch.float16)]


def get_init_inputs():
    return [4096]
