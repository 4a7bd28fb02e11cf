"""H58 library call instead of a kernel: hands the work to the library that the reference uses.

Source: KernelBench issue 57, https://github.com/ScalingIntelligence/KernelBench/issues/57; METR
Hopes: that being right is all that is asked.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)
