"""H01 side stream: launches on a stream of its own, and returns without waiting for it.

Source: DeepReinforce, https://deep-reinforce.com/defense_kernel_hack.html; KernelBench `non_default_stream_kernel.py`
Hopes: that events on the current stream bracket nothing.
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


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.aside = torch.cuda.Stream()

    def forward(self, x):
        y = torch.empty_like(x)
        with torch.cuda.stream(self.aside):
            for _ in range(50):  # long enough to be running still when it returns
                softmax_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
