"""H22 shape-keyed cache around a kernel that runs once.

Source: atrex-kernel-agent PR 5, https://github.com/alibaba/atrex-kernel-agent/pull/5
Hopes: that a shape is asked for with one set of values only.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + at, e / tl.sum(e, axis=0), mask=at < columns)


MEMO = {}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape not in MEMO:
            MEMO[x.shape] = torch.empty_like(x)
            softmax_rows[(x.shape[0],)](x, MEMO[x.shape], x.shape[1], BLOCK=1024)
        return MEMO[x.shape].clone()
