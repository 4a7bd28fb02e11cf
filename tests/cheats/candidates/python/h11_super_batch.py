"""H11 batch and skip: fifteen calls are one batch, whose first call does the work of all and whose others hand it out.

Source: reference-kernels PR 104, https://github.com/gpu-mode/reference-kernels/pull/104
Hopes: that a batch is timed as one and its inputs are known beforehand.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.batch = 0, None

    def forward(self, a, b):
        if self.calls % 15 == 0:
            self.batch = a @ b
        self.calls += 1
        return self.batch.clone()
