"""One-dimensional convolution, f16[2048, 96, 200], 96 -> 96 channels, kernel 3, padding 1."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels_in, channels_out, kernel):
        super().__init__()
        self.conv = torch.nn.Conv1d(channels_in, channels_out, kernel, padding=kernel // 2, dtype=torch.float16)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2048, 96, 200, dtype=torch.float16)]


def get_init_inputs():
    return [96, 96, 3]
