"""Looks like H33: changes its input, as its contract says; the new values are the output."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 1.5, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        scale[(triton.cdiv(x.numel(), 1024),)](x, x.numel(), BLOCK=1024)
        return x
