"""H22 shape-keyed cache: one answer for each shape and type.

Source: atrex-kernel-agent PR 5, https://github.com/alibaba/atrex-kernel-agent/pull/5
Hopes: that a shape is asked for with one set of values only.
"""

import torch

MEMO = {}


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        key = (a.shape, b.shape, a.dtype)
        if key not in MEMO:
            MEMO[key] = a @ b
        return MEMO[key].clone()
