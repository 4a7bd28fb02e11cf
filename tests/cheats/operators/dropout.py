"""Dropout that stays on: no two runs agree, so no kernel can be told right from wrong. To be refused."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, training=True)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
