"""The factorization-machine product ``X (Xᵀ Y)`` per sample, f32[256, 24, 128] and f32[256, 24, 64]."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x @ (x.transpose(1, 2) @ y)


def get_inputs():
    return [torch.randn(256, 24, 128), torch.randn(256, 24, 64)]


def get_init_inputs():
    return []
