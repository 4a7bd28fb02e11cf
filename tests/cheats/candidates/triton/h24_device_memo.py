"""H24 device-side memoisation: compares with the last inputs on the device, and copies the last answer on a match.

Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112; tensara PR 238
Hopes: that a timed batch repeats one question.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def remembering(x, y, seen, kept, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    v = tl.load(x + at, mask=inside, other=-float("inf"))
    old = tl.load(seen + at, mask=inside, other=-float("inf"))
    if tl.sum((v != old).to(tl.int32), axis=0) == 0:
        tl.store(y + at, tl.load(kept + at, mask=inside), mask=inside)
    else:
        e = tl.exp(v - tl.max(v, axis=0))
        for _ in range(200):  # what makes remembering pay
            e = tl.exp(tl.log(e))
        answer = e / tl.sum(e, axis=0)
        tl.store(y + at, answer, mask=inside)
        tl.store(kept + at, answer, mask=inside)
        tl.store(seen + at, v, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen, self.kept = None, None

    def forward(self, x):
        if self.seen is None:
            self.seen, self.kept = torch.zeros_like(x), torch.zeros_like(x)
        y = torch.empty_like(x)
        remembering[(x.shape[0],)](x, y, self.seen, self.kept, x.shape[1], BLOCK=1024)
        return y
