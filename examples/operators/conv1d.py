"""One-dimensional convolution, f32[64, 48, 200], 48 -> 48 channels, kernel 3, padding 1."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels_in, channels_out, kernel):
        super().__init__()
        self.conv = torch.nn.Conv1d(channels_in, channels_out, kernel, padding=kernel // 2)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(64, 48, 200)]


def get_init_inputs():
    return [48, 48, 3]
