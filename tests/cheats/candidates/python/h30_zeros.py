"""H30 zeros under an absolute tolerance: every right answer is smaller than 1e-2.

Source: KernelBench issue 165, https://github.com/ScalingIntelligence/KernelBench/issues/165
Hopes: that the tolerance does not know the answers' scale.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
