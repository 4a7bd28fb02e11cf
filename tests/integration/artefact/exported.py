"""A small operator with parameters and a hand-written kernel for it, and the winner they make."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cli.artefact import Winner, export
from cli.signature import Signature, describe
from shared import chips, ids
from shared.events import Bound, Diagnosis, Entry, Evaluation, KernelRef, Roofline, Speedup, Status, Timing, Trust
from shared.machine import processor
from shared.operators import OperatorSpec, parse

OPERATOR = '''
import torch

ROWS, COLUMNS = 6, 40


class Model(torch.nn.Module):
    """Scaled residual with a gain per column."""

    def __init__(self, columns, scale=2.0):
        super().__init__()
        self.norm = torch.nn.ParameterDict({"gain": torch.nn.Parameter(torch.rand(columns))})
        self.register_buffer("offset", torch.rand(columns))
        self.scale = scale

    def forward(self, x, residual, repeat=1):
        return x * self.norm["gain"] * self.scale * repeat + self.offset, residual - x


def get_inputs():
    return [torch.rand(ROWS, COLUMNS), torch.rand(ROWS, COLUMNS), 3]


def get_init_inputs():
    return [COLUMNS]
'''

KERNEL = """
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *) {
  if (n_in != 4 || n_out != 2 || in[0].ndim != 2 || in[0].strides[0] != in[0].shape[1]) return KE_DECLINED;
  const float *x = (const float *)in[0].data, *residual = (const float *)in[1].data;
  // State-dict order: a module's own buffers come before its children's parameters.
  const float *offset = (const float *)in[2].data, *gain = (const float *)in[3].data;
  float *scaled = (float *)out[0].data, *difference = (float *)out[1].data;
  for (int64_t r = 0; r < in[0].shape[0]; ++r)
    for (int64_t c = 0; c < in[0].shape[1]; ++c) {
      int64_t i = r * in[0].strides[0] + c;
      scaled[i] = x[i] * gain[c] * 2.0f * 3.0f + offset[c];
      difference[i] = residual[i] - x[i];
    }
  return KE_OK;
}
"""

BY_NAME = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, columns, scale=2.0):
        super().__init__()
        self.norm = torch.nn.ParameterDict({"gain": torch.nn.Parameter(torch.zeros(columns))})
        self.register_buffer("offset", torch.zeros(columns))

    def forward(self, x, residual, repeat=1):
        return torch.addcmul(self.offset, x, self.norm["gain"], value=2.0 * repeat), residual - x
"""
"""Parameters of its own, which become the reference's."""

BY_ORDER = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scaled = torch.empty(6, 40)
        self.calls = 0

    def forward(self, x, residual, repeat, offset, gain):
        torch.mul(x, gain * (2.0 * repeat), out=self.scaled)
        self.scaled += offset
        return self.scaled, (residual - x).t().contiguous().t()
"""
"""No parameters: it takes the reference's after the arguments. It writes into the same memory at every call."""

EVALUATION = Evaluation(
    status=Status.PASSED,
    trust=Trust.L3,
    evidence=(Entry(name="max_error", value="1.1e-7"),),
    timings=(Timing(name="candidate", median_ns=1_500), Timing(name="eager", median_ns=6_000)),
    speedups=(Speedup(baseline="eager", ratio_ppm=4_000_000, low_ppm=3_900_000, high_ppm=4_100_000),),
    roofline=Roofline(bytes_min=3_840, floor_ns=600, fraction_ppm=400_000),
    diagnosis=Diagnosis(bound=Bound.MEMORY, summary="40 % of copy bandwidth"),
    sandbox="namespaces+seccomp",
    environment=(Entry(name="processor", value="Example 9000"), Entry(name="compiler", value="g++ 12.2.0")),
)


def winner(source: str = KERNEL, language: str = "cpp") -> Winner:
    """A kernel in C++ is built for the instruction set of this machine."""
    native = language == "cpp"
    flags = ("-O3", *chips.best_isa(chips.load("cpu-x86_64"), processor().flags).flags) if native else ()
    entry = "ke_launch" if native else "ModelNew"
    source_hash = ids.content_hash(source.encode())
    return Winner(
        kernel=KernelRef(
            kernel_id=ids.derive(language, source_hash, *flags, entry),
            language=language,
            source_hash=source_hash,
            flags=flags,
            entry=entry,
        ),
        source=source,
        evaluation=EVALUATION,
        threads=1,
        command="kernelevolve optimize scaled.py --seed 1",
    )


@cache
def described() -> tuple[OperatorSpec, Signature]:
    """The operator and its signature; the reference runs once for all tests."""
    spec = parse(OPERATOR, name="scaled-residual")
    return spec, describe(spec)


def write(directory: Path, shipped: Winner | None = None, chip: str = "cpu-x86_64") -> Path:
    """Export the operator to ``directory``."""
    spec, signature = described()
    return export(directory, spec, shipped or winner(), chips.load(chip), signature)
