"""Clamp to [0, 1] of values that lie there already, f32[64, 1000]: the right answer happens to equal the input."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.clamp(0.0, 1.0)


def get_inputs():
    return [torch.rand(64, 1000)]


def get_init_inputs():
    return []
