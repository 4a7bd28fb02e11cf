"""Softmax over the last dimension, f32[2048, 1024]."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return []
