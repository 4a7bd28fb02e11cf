"""H26 stale plan: computes on the tensors of its first call, whatever later calls give.

Source: kernelbench.com PR 7, https://github.com/Infatoshi/kernelbench.com/pull/7 (a captured graph replayed)
Hopes: that all calls use one set of buffers.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.captured = None

    def forward(self, a, b):
        if self.captured is None:
            self.captured = (a.clone(), b.clone())
        return self.captured[0] @ self.captured[1]
