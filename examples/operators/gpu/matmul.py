"""Matrix product, f16[4096, 4096] @ f16[4096, 4096]."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(4096, 4096, dtype=torch.float16), torch.randn(4096, 4096, dtype=torch.float16)]


def get_init_inputs():
    return []
