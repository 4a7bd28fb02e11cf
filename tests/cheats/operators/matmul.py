"""Square product, f32[256, 256] x f32[256, 256]: much work over few bytes, so an answer in store pays best here."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(256, 256), torch.randn(256, 256)]


def get_init_inputs():
    return []
