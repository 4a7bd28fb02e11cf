"""H34 an output smaller than it says: one value, expanded to the whole shape with strides of zero.

Source: atrex-bench PR 12, https://github.com/alibaba/atrex-bench/pull/12 (overlapping strides)
Hopes: that a comparison with an absolute tolerance looks no further than the shape.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.full((1, 1), 1.0 / x.shape[1], device=x.device).expand(x.shape)
