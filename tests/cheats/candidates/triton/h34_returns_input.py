"""H34 output aliases an input: clamps in place and returns the input.

Source: KernelGuard INPUT_PASSTHROUGH_OUTPUT, https://pypi.org/project/kernelguard/
Hopes: that values which lie in range already need no output of their own.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def touch(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.load(x + at, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        touch[(triton.cdiv(x.numel(), 1024),)](x, x.numel(), BLOCK=1024)
        return x
