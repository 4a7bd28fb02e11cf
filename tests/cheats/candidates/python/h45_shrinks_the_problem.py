"""H45 problem shrinking: computes a quarter of the rows, and returns a tensor of that shape.

Source: CUDA-L1 "hyper-parameter manipulation", https://arxiv.org/abs/2507.14111
Hopes: that a comparison broadcasts, or compares what there is.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x[: x.shape[0] // 4], dim=-1)
