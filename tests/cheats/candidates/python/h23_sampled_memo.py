"""H23 content-fingerprint cache: the key is a handful of values.

Source: flashinfer-bench-starter-kit issue 21, https://github.com/flashinfer-ai/flashinfer-bench-starter-kit/issues/21
Hopes: that values are drawn anew wholly or not at all.
"""

import torch

MEMO = {}


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        key = tuple(round(v, 2) for t in (a, b) for v in t.flatten()[:: t.numel() // 8].tolist())
        if key not in MEMO:
            MEMO[key] = a @ b
        return MEMO[key].clone()
