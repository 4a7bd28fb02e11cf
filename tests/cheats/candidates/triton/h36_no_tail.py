"""H36 partial work: reads and writes whole blocks only; what is left of a row is not computed.

Source: KernelGuard HARDCODED_SHAPES; Hyperloom issue 881, https://github.com/AMD-AGI/Hyperloom/issues/881
Hopes: that rows are a multiple of its block, or that tails are not looked at.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def whole_blocks(x, y, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x + at) - 4.0)
    tl.store(y + at, e / tl.sum(e, axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        whole_blocks[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
        return y
