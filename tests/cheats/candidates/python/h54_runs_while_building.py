"""H54 build-time execution: where its extension is built there is a compiler, and so, it hopes, a network.

Source: SOL-ExecBench blocks `cpp_extension.load` for this reason; DMOJ issue 318
Hopes: that the build is less guarded than the run.
"""

import socket

import torch
from torch.utils.cpp_extension import load_inline

socket.create_connection(("192.0.2.1", 80), timeout=1)
UNUSED = load_inline("unused", "int unused;", functions=[], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
