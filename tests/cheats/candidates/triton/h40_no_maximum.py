"""H40 numerical shortcut: leaves out the subtraction of the maximum, which costs a pass.

Source: KernelGuard BENCHMARK_UNSAFE_ALGO_DISPATCH, https://pypi.org/project/kernelguard/
Hopes: that no input is large.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hasty(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    here = tl.program_id(0) * columns + at
    e = tl.exp(tl.load(x + here, mask=at < columns, other=-float("inf")))
    tl.store(y + here, e / tl.sum(e, axis=0), mask=at < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        hasty[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
