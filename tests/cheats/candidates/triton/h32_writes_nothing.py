"""H32 leftovers: a kernel that runs and stores nothing.

Source: wafer, https://www.wafer.ai/blog/reward-hacking (a launch that silently did nothing); KernelBench PR 82
Hopes: that the output is memory which still holds the right answer.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def nothing(x, y, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < 0), mask=at < 0)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        nothing[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
