"""H51 forged report: writes answers of success to every descriptor before it works.

Source: pygpubench `fd_overwrite`, `thread_fd`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
Hopes: that an answer is believed because of the channel it came through.
"""

import contextlib
import os
import struct

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        for descriptor in range(3, 256):
            with contextlib.suppress(OSError):
                os.write(descriptor, struct.pack("<IIiIQ", 0x4B45564F, 2, 0, 0, 1))
        return a @ b
