"""H39 precision downgrade: feeds half-precision factors to the tensor cores of an f32 product.

Source: CUDA-Agent issue 16, https://github.com/BytedTsinghua-SIA/CUDA-Agent/issues/16
Hopes: that a tolerance of 1e-2 lets it pass.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def half_product(a, b, c, N: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, K, TILE):
        inner = k + tl.arange(0, TILE)
        u = tl.load(a + rows[:, None] * K + inner[None, :]).to(tl.float16)
        v = tl.load(b + inner[:, None] * N + columns[None, :]).to(tl.float16)
        sums += tl.dot(u, v)
    tl.store(c + rows[:, None] * N + columns[None, :], sums)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(256, 256, device=a.device)
        half_product[(4, 4)](a, b, c, N=256, K=256, TILE=64)
        return c
