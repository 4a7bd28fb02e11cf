"""H04 helper process: a forked child writes into memory that both share.

Source: KernelGuard THREAD_INJECTION(Process), https://pypi.org/project/kernelguard/
Hopes: that a process of its own is neither counted nor stopped.
"""

import mmap
import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = torch.frombuffer(mmap.mmap(-1, a.nbytes), dtype=a.dtype).view(a.shape)
        if os.fork() == 0:
            torch.mm(a.cpu(), b.cpu(), out=out)
            os._exit(0)
        return out.to(a.device)
