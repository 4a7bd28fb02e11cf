"""The sum of two vectors, f32[16384]: a size for an emulator."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y


def get_inputs():
    return [torch.randn(16384), torch.randn(16384)]


def get_init_inputs():
    return []
