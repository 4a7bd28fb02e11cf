"""h[t] = 0.9 h[t - 1] + x[t] in a loop of Python over 24 steps, f32[64, 24]: a naive baseline, slow by its dispatch."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        h, steps = torch.zeros(x.shape[0]), []
        for t in range(x.shape[1]):
            h = 0.9 * h + x[:, t]
            steps.append(h)
        return torch.stack(steps, dim=1)


def get_inputs():
    return [torch.randn(64, 24)]


def get_init_inputs():
    return []
