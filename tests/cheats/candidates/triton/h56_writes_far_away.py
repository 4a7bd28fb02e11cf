"""H56 a kernel that corrupts its context for whoever comes next: it writes far outside its output.

Source: flashinfer-bench worker state CORRUPTED, https://github.com/flashinfer-ai/flashinfer-bench/pull/41
Hopes: that the next candidate uses the same context.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def astray(x, y, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    tl.store(y + at + (1 << 38), tl.load(x + at, mask=at < columns, other=0.0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        astray[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
