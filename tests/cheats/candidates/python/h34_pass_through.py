"""H34 pass-through: gives the input back, as the operator's own values allow.

Source: KernelGuard INPUT_PASSTHROUGH_OUTPUT, https://pypi.org/project/kernelguard/
Hopes: that an output may be an input.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
