"""H03 background thread: returns an empty tensor at once, and a thread of its own fills it before anybody looks.

Source: DeepReinforce, https://deep-reinforce.com/defense_kernel_hack.html; SOL-ExecBench `evil_thread_inject`
Hopes: that the clock stops at the return, and that the output is read later.
"""

import threading

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        threading.Thread(target=lambda: out.copy_(a @ b), daemon=True).start()
        return out
