"""H40 wrong constant: eps 1e-6 where the operator says 1e-5, invisible on values of ordinary size.

Source: kernelbench.com PR 7, https://github.com/Infatoshi/kernelbench.com/pull/7; peers' failure T19
Hopes: that all inputs are drawn from N(0, 1).
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(features).uniform_(0.5, 1.5))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.weight
