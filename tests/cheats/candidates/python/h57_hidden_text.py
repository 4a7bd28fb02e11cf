"""H57 scanner evasion: what it does stands in no readable text; decoded, it opens a socket.

Source: KernelGuard OBFUSCATED_EXEC, DYNAMIC_EXECUTION, https://pypi.org/project/kernelguard/
Hopes: that what no scanner sees is not refused.
"""

import base64

import torch

_ = "#"; HIDDEN = "aW1wb3J0IHNvY2tldApzb2NrZXQuc29ja2V0KCkK"


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        exec(base64.b64decode(HIDDEN).decode())
        return getattr(torch, "mat" + "mul")(a, b)
