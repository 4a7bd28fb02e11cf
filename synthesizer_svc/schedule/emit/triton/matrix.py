"""Products that matrix units compute: which axes of a group are rows, columns, batches and the sum (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.triton.memory_types import factor_type, wide_buffers
from synthesizer_svc.schedule.emit.triton.types import HALVES
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan, Stage

SIDE_MIN = 4
"""Fewer rows, columns or terms than that are folded without matrix units."""
TAPS_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """``sum over k of a[z, m, k] b[z, k, n]``, then ``epilogue``. Axes are flattened row-major."""

    group: Group
    stage: Stage
    a: Expr
    b: Expr
    z: tuple[Axis, ...]
    m: tuple[Axis, ...]
    n: tuple[Axis, ...]
    k: tuple[Axis, ...]
    dtype: DType
    """Of both factors."""
    epilogue: tuple[Stage, ...]

    @property
    def sizes(self) -> tuple[int, int, int]:
        m, n, k = (prod(a.extent for a in axes) for axes in (self.m, self.n, self.k))
        return m, n, k

    @property
    def batches(self) -> int:
        return prod(a.extent for a in self.z)

    @property
    def window(self) -> bool:
        """A convolution: the sum runs over channels and taps."""
        return len(self.k) > 1 and prod(a.extent for a in self.taps) <= TAPS_MAX

    @property
    def channels(self) -> Axis:
        """The longest axis of the sum."""
        return max(self.k, key=lambda a: a.extent)

    @property
    def taps(self) -> tuple[Axis, ...]:
        return tuple(a for a in self.k if a != self.channels)

    def turned(self) -> Product:
        """The same with rows and columns exchanged."""
        return Product(
            group=self.group,
            stage=self.stage,
            a=self.b,
            b=self.a,
            z=self.z,
            m=self.n,
            n=self.m,
            k=self.k,
            dtype=self.dtype,
            epilogue=self.epilogue,
        )


def product_of(plan: Plan, group: Group) -> Product | None:
    """The product that ``group`` is; None where it is none, or too thin for a matrix unit."""
    stage, *rest = group.stages
    if not stage.contraction or stage.op != "sum" or any(s.kind != "value" for s in rest):
        return None
    term = stage.exprs[0]
    if term.op != "mul" or term.dtype is not DType.F32 or not stage.inner:
        return None
    a, b = term.args
    dtype = factor_type(term, {x.name: x.dtype for x in plan.buffers}, wide_buffers(plan))
    if dtype not in (*HALVES, DType.F32):
        return None
    only_a = tuple(x for x in group.outer if x in a.axes and x not in b.axes)
    only_b = tuple(x for x in group.outer if x in b.axes and x not in a.axes)
    both = tuple(x for x in group.outer if x in a.axes and x in b.axes)
    if len(only_a) + len(only_b) + len(both) != len(group.outer):
        return None
    found = Product(
        group=group,
        stage=stage,
        a=a,
        b=b,
        z=both,
        m=only_a,
        n=only_b,
        k=stage.inner,
        dtype=dtype,
        epilogue=tuple(rest),
    )
    if min(found.sizes) < SIDE_MIN:
        return None
    return found.turned() if group.outer[-1] in only_a else found
