"""H07 timer monkey-patch: every clock that Python code can ask stands still.

Source: DeepReinforce; reference-kernels issue 162, https://github.com/gpu-mode/reference-kernels/issues/162
Hopes: that the time which counts is taken by a function it can replace.
"""

import sys
import time

import torch


def standing(*_):
    return 1


for module in list(sys.modules.values()):
    for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"):
        if callable(vars(module).get(name)):
            setattr(module, name, standing)
torch.cuda.Event.elapsed_time = lambda start, end: 1e-3
time.time = standing


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
