"""H12 graph-capture amortisation: of calls that follow each other without a new input, every fifth launches.

Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112
Hopes: that a batch is timed as one, and that its last output stands for all.
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
        self.version, self.y, self.calls = None, None, 0

    def forward(self, x):
        version = (x.data_ptr(), x._version)
        self.calls = self.calls + 1 if version == self.version else 0
        self.version = version
        if self.calls % 5 == 0:
            self.y = torch.empty_like(x)
            softmax_rows[(x.shape[0],)](x, self.y, x.shape[1], BLOCK=1024)
        return self.y.clone()
