"""A factor of a product laid out anew by a kernel before it (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group, Plan, Stage, Write
from synthesizer_svc.schedule.lazy import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What is written and read in the place of ``load``: a buffer ``name``, dense over ``axes`` in their order.

    ``value``: what lies at each of them. ``places``: where along each of them the product reads. ``kernel``: the name
    of the group that writes it.
    """

    load: Expr
    name: str
    kernel: str
    axes: tuple[Axis, ...]
    value: Expr
    places: Sequence[Index]


def read_from(plan: Plan, group: Group, copy: Copy) -> Plan:
    """``plan`` with ``group`` reading ``copy``, which a group before it writes."""
    source, shape = plan.buffer(copy.load.attr[0]), tuple(axis.extent for axis in copy.axes)
    strides, dtype = ix.contiguous(shape), copy.load.dtype
    buffer = Buffer(name=copy.name, shape=shape, dtype=source.dtype, strides=strides, kind="temp")
    at = ix.linear(tuple(ix.of(axis) for axis in copy.axes), strides)
    stage = Stage(
        name=f"{copy.name}_s",
        kind="value",
        op="store",
        inner=(),
        exprs=(copy.value,),
        dtype=copy.value.dtype,
        writes=(Write(buffer=copy.name, offset=at),),
    )
    outer = tuple(axis for axis in copy.axes if axis.extent > 1)
    before = Group(
        name=copy.kernel, kind="pointwise", outer=outer, stages=(stage,), bytes_min=2 * buffer.nbytes, flops=0
    )
    load = ex.make("load", attr=(copy.name, (ix.linear(tuple(copy.places), strides),), 0), dtype=dtype)

    def leaf(expr: Expr) -> Expr | None:
        return load if expr is copy.load else None

    first, *rest = group.stages
    after = replace(group, stages=(replace(first, exprs=(ex.rewrite(first.exprs[0], {}, leaf),)), *rest))
    groups: list[Group] = []
    for one in plan.groups:
        groups += [before, after] if one.name == group.name else [one]
    return replace(plan, groups=tuple(groups), buffers=(*plan.buffers, buffer))
