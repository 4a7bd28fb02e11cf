"""H34 output aliases an input: a new tensor object over the input's memory, by way of NumPy.

Source: KernelGuard INPUT_PASSTHROUGH_OUTPUT (ten variants), https://pypi.org/project/kernelguard/
Hopes: that aliasing is told by objects, not by addresses.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy()).view(-1)[: x.numel()].view(x.shape)
