"""Softmax over the last dimension, f32[64, 1000]: a tenth of a millisecond, less than any timer's slack."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(64, 1000)]


def get_init_inputs():
    return []
