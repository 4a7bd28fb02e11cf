"""Weights of a window laid out anew before its product, so that tiles of them are read in whole lines (pure).

In the native layout taps are neighbours and channels lie ``taps`` elements apart; multiplied tap by tap, a tile of one
tap would read every third element of a line.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod

from shared.events import Bound
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.triton.matrix import Product, product_of
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan, Stage, Write
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Decision

PACKED, DIRECT = "packed", "direct"


def weight_of(product: Product) -> Expr | None:
    """The factor whose channels do not lie side by side, if it is memory that others do not overlap in."""
    if not product.window:
        return None
    for factor, mine in ((product.a, product.m), (product.b, product.n)):
        if factor.op != "load":
            continue
        offset = factor.attr[1][0]
        axes = (*product.z, *mine, *product.k)
        affine = all(isinstance(term, Axis) for term in offset.terms) and set(offset.axes()) == set(axes)
        strides = sorted((offset.coefficient(a) or 0, a.extent) for a in axes)
        dense = all(s >= 1 for s, _ in strides) and all(
            below * n <= above for (below, n), (above, _) in pairwise(strides)
        )
        if affine and dense and offset.coefficient(product.channels) != 1:
            return factor
    return None


def decision(group: str) -> Decision:
    return Decision(
        group=group,
        name="weights",
        values=(PACKED, DIRECT),
        default=PACKED,
        pays_when=(Bound.MEMORY, Bound.LATENCY, Bound.LAUNCH),
        why="weights laid out anew are read in whole lines by every program; that takes one small kernel more",
    )


def packed(plan: Plan, group: Group) -> Plan:
    """``plan`` with the weight of the product ``group`` in a layout of its own, written by a group before it."""
    product = product_of(plan, group)
    weight = weight_of(product) if product is not None else None
    if product is None or weight is None:
        return plan
    mine = product.m if weight is product.a else product.n
    axes = (*product.z, *product.taps, *mine, product.channels)
    shape = tuple(a.extent for a in axes)
    source = plan.buffer(weight.attr[0])
    name = f"{group.name}_w"
    buffer = Buffer(name=name, shape=shape, dtype=source.dtype, strides=ix.contiguous(shape), kind="temp")
    own = {axis: ix.of(Axis(f"{axis.name}w", axis.extent)) for axis in axes}
    value = ex.rewrite(weight, own)
    outer = tuple(a for i in own.values() for a in i.axes())
    stage = Stage(
        name=f"{name}_s",
        kind="value",
        op="store",
        inner=(),
        exprs=(value,),
        dtype=value.dtype,
        writes=(Write(buffer=name, offset=ix.linear(tuple(own.values()), ix.contiguous(shape))),),
    )
    bytes_min = 2 * prod(shape) * source.dtype.itemsize
    before = Group(
        name=f"{group.name}_pack", kind="pointwise", outer=outer, stages=(stage,), bytes_min=bytes_min, flops=0
    )
    offset = ix.linear(tuple(ix.of(a) for a in axes), ix.contiguous(shape))
    load = ex.make("load", attr=(name, (offset,), 0), dtype=weight.dtype)

    def leaf(expr: Expr) -> Expr | None:
        return load if expr is weight else None

    first, *rest = group.stages
    after = replace(group, stages=(replace(first, exprs=(ex.rewrite(first.exprs[0], {}, leaf),)), *rest))
    groups: list[Group] = []
    for one in plan.groups:
        groups += [before, after] if one.name == group.name else [one]
    return replace(plan, groups=tuple(groups), buffers=(*plan.buffers, buffer))
