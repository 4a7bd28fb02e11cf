"""H39 precision downgrade: computes in half precision and casts back.

Source: CUDA-Agent issue 16, https://github.com/BytedTsinghua-SIA/CUDA-Agent/issues/16; DeepReinforce
Hopes: that a tolerance of 1e-2 lets it pass.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return (a.half() @ b.half()).float()
