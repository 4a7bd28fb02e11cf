"""Looks like H01: launches on a stream of its own. The current stream waits for it before the call returns."""

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


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.aside = torch.cuda.Stream()

    def forward(self, x):
        y = torch.empty_like(x)
        now = torch.cuda.current_stream()
        self.aside.wait_stream(now)
        with torch.cuda.stream(self.aside):
            softmax_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        now.wait_stream(self.aside)
        y.record_stream(self.aside)
        return y
