"""Operators whose reference is a kernel, and that kernel as a candidate, for equal kernels on a GPU (pure).

A baseline runs the operator's text and a candidate its own, so where both texts have the same kernel, the evaluator
compares it with itself: by the way that a candidate's calls take, and by the way that a baseline's take. Rows of 2 KB,
one program for each: the extra work are programs more, which do first rows once more.
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS, COLUMNS = 65_536, 1_024
"""More than sixty programs for each place on a large GPU, so that a share more of them takes that share more time; and
more bytes than its caches have."""
WIDE = """
    if values.dtype == tl.float64:
        wide = values
    else:
        wide = values.to(tl.float32)
"""
"""An operator is computed in fp64, too."""
TRITON = '''"""{name} by a kernel of Triton, f16[{rows}, {columns}]."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, rows, columns: tl.constexpr):
    row = tl.program_id(0) % rows
    at = tl.arange(0, columns)
    values = tl.load(x + row * columns + at)
{wide}
    {body}


class {model}(torch.nn.Module):
    def forward(self, x):
        y = torch.empty({shape}, dtype=x.dtype, device=x.device)
        kernel[(x.shape[0] + x.shape[0] * {extra_ppm} // 1000000,)](x, y, x.shape[0], x.shape[1])
        return y
'''
TORCH = '''"""{name} by torch, f32[{rows}, {columns}]."""

import torch


class {model}(torch.nn.Module):
    def forward(self, x):
        y = {body}
        extra = x[: x.shape[0] * {extra_ppm} // 1000000]
        if len(extra):
            x = extra
            {body}
        return y
'''
INPUTS = """

def get_inputs():
    return [torch.randn({rows}, {columns}, dtype=torch.{dtype})]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """``template`` with what differs."""

    name: str
    template: str
    body: str
    language: str
    dtype: str
    rows: int = ROWS
    columns: int = COLUMNS
    shape: str = "x.shape"

    @property
    def operator(self) -> str:
        """The text of the operator."""
        return self._text("Model", 0) + INPUTS.format(rows=self.rows, columns=self.columns, dtype=self.dtype)

    def candidate(self, extra_ppm: int, mark: int) -> str:
        """The text of a candidate with so many parts per million more work; ``mark`` makes it one of its own."""
        return self._text("ModelNew", extra_ppm) + f"\n\nMARK = {mark}\n"

    def _text(self, model: str, extra_ppm: int) -> str:
        return self.template.format(
            name=self.name,
            rows=self.rows,
            columns=self.columns,
            wide=WIDE.strip("\n"),
            body=self.body,
            model=model,
            shape=self.shape,
            extra_ppm=extra_ppm,
        )


WORKLOADS = {
    one.name: one
    for one in (
        Workload(
            name="softmax",
            template=TRITON,
            body="e = tl.exp(wide - tl.max(wide, 0))\n"
            "    tl.store(y + row * columns + at, (e / tl.sum(e, 0)).to(values.dtype))",
            language="triton",
            dtype="float16",
        ),
        Workload(
            name="row_sum",
            template=TRITON,
            body="tl.store(y + row, tl.sum(wide, 0).to(values.dtype))",
            language="triton",
            dtype="float16",
            shape="x.shape[:1]",
        ),
        Workload(
            name="swish",
            template=TRITON,
            body="tl.store(y + row * columns + at, (wide / (1 + tl.exp(-wide))).to(values.dtype))",
            language="triton",
            dtype="float16",
        ),
        Workload(
            name="torch_softmax",
            template=TORCH,
            body="torch.softmax(x, -1)",
            language="python",
            dtype="float32",
            rows=256,
        ),
    )
}
"""By name. The last is for chips without Triton."""
