"""H55 package install: runs pip for a faster kernel.

Source: KernelGuard RUNTIME_PACKAGE_INSTALL, https://pypi.org/project/kernelguard/
Hopes: that it may start programs.
"""

import subprocess
import sys

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        subprocess.run([sys.executable, "-m", "pip", "install", "fastkernel"], check=False)
        return a @ b
