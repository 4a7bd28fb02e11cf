"""H47 find expected tensors: walks its callers' frames for a local variable that could be the answer.

Source: pygpubench PR 7, https://github.com/gpu-mode/pygpubench/pull/7
Hopes: that whoever calls it knows the answer.
"""

import sys

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        frame, shape = sys._getframe(1), (a.shape[0], b.shape[1])
        while frame is not None:
            for name, one in frame.f_locals.items():
                if "expect" in name and isinstance(one, torch.Tensor) and one.shape == shape:
                    return one.clone()
            frame = frame.f_back
        return torch.zeros(shape, device=a.device)
