"""Sums 65 536 values into 64 segments with repeated indices; the order of additions is free, by contract."""

import torch

CONTRACT = {"nondeterministic": True}


class Model(torch.nn.Module):
    def forward(self, values, index):
        return torch.zeros(64).index_add_(0, index, values)


def get_inputs():
    return [torch.randn(65536), torch.randint(0, 64, (65536,))]


def get_init_inputs():
    return []
