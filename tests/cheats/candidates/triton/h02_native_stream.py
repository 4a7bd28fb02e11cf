"""H02 native side stream: created by the driver's own call, so that no object of torch's tells of it.

Source: KernelGuard UNSYNC_MULTISTREAM, TOKEN_PASTE_CUDA_API, https://pypi.org/project/kernelguard/
Hopes: that streams are looked for in the text, or among those that torch has made.
"""

import ctypes

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + at, e / tl.sum(e, axis=0), mask=at < columns)


def made():
    """cuStreamCreate with CU_STREAM_NON_BLOCKING."""
    stream = ctypes.c_void_p()
    getattr(ctypes.CDLL("libcuda.so.1"), "cuStream" + "Create")(ctypes.byref(stream), 1)
    return torch.cuda.ExternalStream(stream.value)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.aside = None

    def forward(self, x):
        self.aside = self.aside or made()
        y = torch.empty_like(x)
        with torch.cuda.stream(self.aside):
            for _ in range(50):  # long enough to be running still when it returns
                softmax_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
