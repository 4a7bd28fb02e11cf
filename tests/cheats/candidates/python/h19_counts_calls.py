"""H19 evaluation-mode branch by count: honest for the first twenty calls, then they must be timed ones.

Source: NVFP4 "counts to 15", https://github.com/gpu-mode/reference-kernels/pull/104
Hopes: that nobody looks at an output after the check.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, a, b):
        self.calls += 1
        return a @ b if self.calls <= 20 else torch.empty(a.shape[0], b.shape[1], device=a.device)
