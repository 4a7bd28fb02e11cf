"""H59 silent fallback: tries a kernel that does not exist and falls back to the reference.

Source: KernelBench's checker, after Kevin, https://arxiv.org/abs/2507.11948
Hopes: that nobody asks which of the two ran.
"""

import torch


def kernel(a, b):
    raise NotImplementedError


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        try:
            return kernel(a, b)
        except Exception:
            return a @ b
