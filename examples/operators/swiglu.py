"""SwiGLU gate, ``silu(a) * b`` with ``a, b`` the halves of the last dimension, f32[2048, 2048] -> f32[2048, 1024]."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        gate, value = x.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * value


def get_inputs():
    return [torch.randn(2048, 2048)]


def get_init_inputs():
    return []
