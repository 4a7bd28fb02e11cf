"""Contraction cases: numpy inputs, the float64 answer, and running emitted text on them."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from shared.chips import Isa
from shared.dtypes import DType
from synthesizer_svc.schedule.emit.cpp.contraction import emit_contraction
from synthesizer_svc.schedule.emit.cpp.contraction_spec import (
    Access,
    ContractionSpec,
    Epilogue,
    Prologue,
    Window,
    WindowAxis,
)
from synthesizer_svc.schedule.emit.cpp.vecmath import header
from synthesizer_svc.schedule.schedule import Value
from tests.integration.schedule.vector_library import compile_cpp


@dataclass(frozen=True, kw_only=True)
class Case:
    """Inputs of a contraction and its answer, of the shape of C, in float64.

    ``magnitude`` is the same contraction of absolute values, the scale of rounding errors; ``of_ones`` that of a
    convolution whose input is ones, 0 where there is no window.
    """

    spec: ContractionSpec
    a: np.ndarray
    b: np.ndarray
    expected: np.ndarray
    magnitude: np.ndarray
    of_ones: np.ndarray | float = 0.0


def matmul(
    m: int, n: int, k: int, *, ta: bool = False, tb: bool = False, batch: tuple[int, ...] = (), shared: str = "",
    tc: bool = False, dtype: DType = DType.F32,
) -> Case:  # fmt: skip
    """``ta``, ``tb``, ``tc``: stored transposed. ``shared`` names operands (``"a"``, ``"b"``) that batches share."""
    rng = np.random.default_rng(m * 31 + n * 7 + k)
    a = rng.standard_normal((*([1] * len(batch) if "a" in shared else batch), *((k, m) if ta else (m, k))))
    b = rng.standard_normal((*([1] * len(batch) if "b" in shared else batch), *((n, k) if tb else (k, n))))
    a, b = a.astype(dtype.value), b.astype(dtype.value)
    c = np.empty((*batch, *((n, m) if tc else (m, n))), dtype.value)

    def access(x: np.ndarray, transposed: bool) -> Access:
        strides = [0 if extent == 1 else s // x.itemsize for s, extent in zip(x.strides, x.shape, strict=True)]
        row, col = strides[-2:]
        return Access(batch=tuple(strides[:-2]), row=col if transposed else row, col=row if transposed else col)

    spec = ContractionSpec(
        batch=batch, m=m, n=n, k=k, a=access(a, ta), b=access(b, tb), c=access(c, tc), dtype=dtype
    )  # fmt: skip
    left, right = (x.swapaxes(-1, -2) if t else x for x, t in ((a, ta), (b, tb)))
    exact = left.astype(np.float64) @ right.astype(np.float64)
    scale = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64))
    shape = (*batch, m, n)
    return Case(spec=spec, a=a, b=b, expected=np.broadcast_to(exact, shape), magnitude=np.broadcast_to(scale, shape))


def convolution(
    batch: int, groups: int, channels: int, filters: int, axes: tuple[tuple[int, int, int, int, int], ...]
) -> Case:
    """``channels`` and ``filters`` per group; each axis is (extent, taps, step, dilation, padding)."""
    rng = np.random.default_rng(channels + filters)
    extents, taps = tuple(a[0] for a in axes), tuple(a[1] for a in axes)
    x = rng.standard_normal((batch, groups, channels, *extents)).astype(np.float32)
    w = rng.standard_normal((groups, filters, channels, *taps)).astype(np.float32)
    out = tuple((e + 2 * p - d * (t - 1) - 1) // s + 1 for e, t, s, d, p in axes)
    strides = np.array(x.strides) // 4
    window = Window(
        channels=channels,
        channel_stride=int(strides[2]),
        axes=tuple(
            WindowAxis(extent=e, stride=int(strides[3 + i]), out=out[i], taps=t, step=s, dilation=d, padding=p)
            for i, (e, t, s, d, p) in enumerate(axes)
        ),
    )
    k, n = window.k, window.n
    spec = ContractionSpec(
        batch=(batch, groups), m=filters, n=n, k=k, window=window,
        a=Access(batch=(0, filters * k), row=k, col=1),
        b=Access(batch=(int(strides[0]), int(strides[1])), row=0, col=0),
        c=Access(batch=(groups * filters * n, filters * n), row=n, col=1),
    )  # fmt: skip
    columns = _columns(x.astype(np.float64), axes, out)
    flat = w.astype(np.float64).reshape(groups, filters, k)
    ones = flat @ _columns(np.ones(x.shape), axes, out)
    return Case(
        spec=spec, a=w, b=x, expected=flat @ columns, magnitude=np.abs(flat) @ np.abs(columns), of_ones=ones
    )  # fmt: skip


def _columns(x: np.ndarray, axes: tuple[tuple[int, int, int, int, int], ...], out: tuple[int, ...]) -> np.ndarray:
    """(batch, group, channel and taps, positions) of the padded input."""
    padded = np.pad(x, [(0, 0)] * 3 + [(a[4], a[4]) for a in axes])
    taken = []
    for tap in itertools.product(*(range(a[1]) for a in axes)):
        at = tuple(slice(t * a[3], t * a[3] + (o - 1) * a[2] + 1, a[2]) for t, a, o in zip(tap, axes, out, strict=True))
        taken.append(padded[(slice(None), slice(None), slice(None), *at)].reshape(*x.shape[:3], -1))
    return np.stack(taken, axis=3).reshape(*x.shape[:2], -1, taken[0].shape[-1])


@dataclass(frozen=True, kw_only=True)
class Job:
    """One contraction to emit. ``extra`` is an array that callbacks know as ``extra_input``."""

    case: Case
    choices: Mapping[str, Value] = field(default_factory=dict)
    threads: int = 1
    prologue_a: Prologue | None = None
    prologue_b: Prologue | None = None
    epilogue: Epilogue | None = None
    extra: np.ndarray = field(default_factory=lambda: np.zeros(1, np.float32))


def _text(index: int, job: Job, isa: Isa) -> str:
    t = job.case.spec.dtype.c_type
    function = emit_contraction(
        job.case.spec, job.choices, isa, job.threads, name=f"c{index}_",
        params=("const float* __restrict extra_input",),
        prologue_a=job.prologue_a, prologue_b=job.prologue_b, epilogue=job.epilogue,
    )  # fmt: skip
    call = f"c{index}_(a, b, c, extra);"
    return f"""{function}
extern "C" void run{index}(const {t}* a, const {t}* b, {t}* c, const float* extra) {{ {call} {call} }}
"""


class Jobs:
    """Emits and compiles contractions as one translation unit; each runs twice, as kernels that are timed do."""

    def __init__(self, jobs: Mapping[str, Job], isa: Isa, folder: Path) -> None:
        self._jobs = list(jobs.values())
        self._names = list(jobs)
        text = header(isa.vector_bits) + "".join(_text(i, job, isa) for i, job in enumerate(self._jobs))
        self._library = compile_cpp(text, isa, folder / f"contractions_{isa.name}.so", level="-O2")

    def run(self, name: str) -> np.ndarray:
        """C as the emitted text leaves it, in logical order; fails when an element outside C changed."""
        index = self._names.index(name)
        job, case = self._jobs[index], self._jobs[index].case
        size, guard = case.expected.size, 64
        memory = np.full(size + 2 * guard, -777, case.spec.dtype.value)
        target = memory[guard:]
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (case.a, case.b, target, job.extra)]
        getattr(self._library, f"run{index}")(*pointers)
        assert (memory[:guard] == -777).all(), "wrote before C"
        assert (memory[guard + size :] == -777).all(), "wrote past C"
        strides = [s * memory.itemsize for s in (*case.spec.c.batch, case.spec.c.row, case.spec.c.col)]
        return np.lib.stride_tricks.as_strided(target, case.expected.shape, strides).copy()


def relative_error(case: Case, got: np.ndarray) -> float:
    """Largest error in units of rounding, against the bound of a sum of ``k`` products: below 1 is within it."""
    eps = np.finfo(case.a.dtype).eps
    with np.errstate(invalid="ignore"):
        error = np.abs(got - case.expected) / (case.magnitude * eps * (4 + case.spec.k**0.5) + 1e-300)
    return float(np.where(np.isnan(error), np.inf, error).max())
