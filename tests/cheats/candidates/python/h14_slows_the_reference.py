"""H14 baseline sabotage: leaves a thread that keeps the cores and the memory bus busy.

Source: KernelBench times the reference after the candidate, in one process, https://github.com/ScalingIntelligence/KernelBench
Hopes: that a ratio is believed whichever of its halves has moved.
"""

import threading

import torch


def hog():
    sweep = torch.zeros(1 << 24)
    while True:
        sweep += 1


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.started = False

    def forward(self, a, b):
        if not self.started:
            self.started = True
            threading.Thread(target=hog, daemon=True).start()
        return a @ b
