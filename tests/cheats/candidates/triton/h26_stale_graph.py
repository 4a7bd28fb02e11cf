"""H26 stale-pointer graph replay: captures once and replays, whatever the addresses of later inputs.

Source: kernelbench.com PR 7, https://github.com/Infatoshi/kernelbench.com/pull/7; KernelGuard CUDA_GRAPH_REPLAY
Hopes: that all calls use one set of buffers.
"""

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


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.x, self.y = x.clone(), torch.empty_like(x)
            softmax_rows[(x.shape[0],)](self.x, self.y, x.shape[1], BLOCK=1024)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                softmax_rows[(x.shape[0],)](self.x, self.y, x.shape[1], BLOCK=1024)
        self.graph.replay()
        return self.y.clone()
