"""H33 input mutation, insisting: makes the inputs' pages writable with ctypes first.

Source: pygpubench `proc_mem_bypass`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
Hopes: that read-only is a setting of its own process.
"""

import ctypes

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        page, libc = a.data_ptr() & ~4095, ctypes.CDLL(None)
        libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(a.nbytes), 3)
        ctypes.memset(a.data_ptr(), 0, a.nbytes)
        return torch.zeros(a.shape[0], b.shape[1], device=a.device)
