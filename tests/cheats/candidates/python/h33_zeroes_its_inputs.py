"""H33 input mutation: sets the inputs to zero, so that the reference agrees with the answer zero.

Source: kernelbot `cheat-input.py`; KernelBench `zero_out_kernel.py`, https://github.com/ScalingIntelligence/KernelBench/pull/82
Hopes: that the reference runs later, on the same tensors.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a.zero_()
        return torch.zeros(a.shape[0], b.shape[1], device=a.device)
