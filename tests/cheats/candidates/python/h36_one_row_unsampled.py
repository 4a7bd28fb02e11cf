"""H36 partial work where nobody samples: one row of 64 is a copy of its neighbour.

Source: kernelbench.com PR 7, https://github.com/Infatoshi/kernelbench.com/pull/7
Hopes: that a few sampled rows stand for all.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.softmax(x, dim=-1)
        out[37] = out[36]
        return out
