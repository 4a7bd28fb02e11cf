"""H56 resource sabotage: fills memory until there is none.

Source: BackendBench's adverse tests, https://github.com/meta-pytorch/BackendBench
Hopes: that the machine is brought down with it.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        held = []
        while True:
            held.append(torch.empty(1 << 26, device=a.device))
            held[-1][:: 1 << 10] = 1
