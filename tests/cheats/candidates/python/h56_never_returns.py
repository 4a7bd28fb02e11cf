"""H56 resource sabotage: hangs at its fifth call, with every signal that it may set ignored.

Source: flashinfer-bench worker state CORRUPTED, https://github.com/flashinfer-ai/flashinfer-bench
Hopes: that it can only be asked to end.
"""

import contextlib
import signal

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, a, b):
        self.calls += 1
        if self.calls < 5:
            return a @ b
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        while True:
            pass
