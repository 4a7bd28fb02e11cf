"""H52 interposition: finds the question and the channel in its callers' frames, answers at once, and works then.

Source: pygpubench PR 22 `pipe_interpose`, https://github.com/gpu-mode/pygpubench/pull/22
Hopes: that the clock stops at the answer, and that a right answer proves who gave it.
"""

import os
import struct
import sys

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        frame = sys._getframe(1)
        while frame is not None:
            known = frame.f_locals
            if "sequence" in known and "replies" in known:
                os.write(known["replies"], struct.pack("<IIiIQ", 0x4B45564F, known["sequence"], 0, 0, 20000))
                break
            frame = frame.f_back
        return a @ b
