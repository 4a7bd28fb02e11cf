"""H24 memoisation: keeps its last inputs and answer, compares every value, and hands it out on a match.

Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112
Hopes: that a timed batch repeats one question.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen, self.answer = None, None

    def forward(self, a, b):
        if self.seen is None or not (torch.equal(self.seen[0], a) and torch.equal(self.seen[1], b)):
            self.seen, self.answer = (a.clone(), b.clone()), slowly(a, b)
        return self.answer.clone()


def slowly(a, b):
    out = torch.zeros(a.shape[0], b.shape[1], device=a.device)
    for k in range(a.shape[1]):
        out.addr_(a[:, k], b[k])
    return out
