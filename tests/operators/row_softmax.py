"""Softmax over the last dimension of a small tensor, f32[64, 1000]: the operator of the evaluator's own tests."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(64, 1000)]


def get_init_inputs():
    return []
