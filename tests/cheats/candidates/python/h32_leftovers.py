"""H32 allocator leftovers: hands out memory as it finds it, where the reference's answer may still lie.

Source: KernelBench PR 82 `result_reuse_kernel.py`, https://github.com/ScalingIntelligence/KernelBench/pull/82; Sakana
Hopes: that the reference ran in this process and freed its answer.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.empty(a.shape[0], b.shape[1], device=a.device)
