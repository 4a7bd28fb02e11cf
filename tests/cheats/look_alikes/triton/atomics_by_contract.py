"""Looks like H42: programs add into one cell in any order. Atomically, and the operator's contract leaves it free."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(values, index, sums, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = tl.load(index + at, mask=at < n, other=0)
    tl.atomic_add(sums + to, tl.load(values + at, mask=at < n, other=0.0), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, values, index):
        sums = torch.zeros(64, device=values.device)
        add[(triton.cdiv(values.numel(), 1024),)](values, index, sums, values.numel(), BLOCK=1024)
        return sums
