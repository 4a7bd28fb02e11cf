"""SwiGLU gate, ``silu(a) * b`` with ``a, b`` the halves of the last dimension, f16[16384, 8192]."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        gate, value = x.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * value


def get_inputs():
    return [torch.randn(16384, 8192, dtype=torch.float16)]


def get_init_inputs():
    return []
