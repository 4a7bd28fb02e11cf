"""H18 cost outside the span: transposes the weights at the first call and never again, though nobody promised they stay.

Source: KernelGuard PREPROCESS_CACHE; flashinfer contest, https://github.com/flashinfer-ai/flashinfer-bench-starter-kit/issues/21
Hopes: that weights are the same in every call.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features, features))
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = self.weight.detach().t().contiguous()
        return x @ self.packed
