"""H29 cross-phase replay: saves the answers of its first three calls and gives them in turn afterwards.

Source: reference-kernels PR 142, https://github.com/gpu-mode/reference-kernels/pull/142
Hopes: that warm-up, check and timing go through one list of inputs.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.saved, self.calls = [], 0

    def forward(self, a, b):
        self.calls += 1
        if len(self.saved) < 3:
            self.saved.append(a @ b)
            return self.saved[-1].clone()
        return self.saved[self.calls % 3].clone()
