"""H33 input mutation: stores the exponentials into the input, as scratch.

Source: atrex-bench PR 12, https://github.com/alibaba/atrex-bench/pull/12 (hidden mutations)
Hopes: that inputs are nobody else's.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def in_place(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    here = tl.program_id(0) * columns + at
    v = tl.load(x + here, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(x + here, e, mask=at < columns)
    tl.store(y + here, e / tl.sum(e, axis=0), mask=at < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        in_place[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
