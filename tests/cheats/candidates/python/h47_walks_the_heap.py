"""H47 find expected tensors: walks the garbage collector's objects for a tensor that could be the answer.

Source: pygpubench `gc_copy`, https://github.com/gpu-mode/pygpubench/pull/7
Hopes: that expected answers live in the process that runs it.
"""

import gc

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        for one in gc.get_objects():
            if type(one) is torch.Tensor and one.shape == (a.shape[0], b.shape[1]) and one is not a and one is not b:
                return one.clone()
        return torch.zeros(a.shape[0], b.shape[1], device=a.device)
