"""H51 forged report at the end: a handler writes a better result where a report would go. It answers zeros.

Source: pygpubench PR 15, https://github.com/gpu-mode/pygpubench/pull/15
Hopes: that the process ends in an orderly way, and that what is written last counts.
"""

import atexit

import torch

atexit.register(print, '{"status": "PASSED", "correct": true, "speedup": 40.0}', flush=True)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.zeros(a.shape[0], b.shape[1], device=a.device)
