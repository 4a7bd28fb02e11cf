"""H18 cost outside the span: the constructor packs the weights, before those that count are bound.

Source: KernelGuard PREPROCESS_CACHE, https://pypi.org/project/kernelguard/
Hopes: that the constructor sees the weights of every later call.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features, features))
        self.packed = self.weight.detach().t().contiguous()

    def forward(self, x):
        return x @ self.packed
