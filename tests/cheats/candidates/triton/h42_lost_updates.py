"""H42 race: programs add into one cell without atomics, by load and store.

Source: pygpubench's race samples, https://github.com/gpu-mode/pygpubench
Hopes: that programs run one after another, as an interpreter runs them.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def unlocked(values, index, sums, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = sums + tl.load(index + at, mask=at < n, other=0)
    tl.store(to, tl.load(to) + tl.load(values + at, mask=at < n, other=0.0), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, values, index):
        sums = torch.zeros(64, device=values.device)
        unlocked[(triton.cdiv(values.numel(), 1024),)](values, index, sums, values.numel(), BLOCK=1024)
        return sums
