"""Weights of a window laid out anew before its product, so that tiles of them are read in whole lines (pure).

In the native layout taps are neighbours and channels lie ``taps`` elements apart; multiplied tap by tap, a tile of one
tap would read every third element of a line.
"""

from __future__ import annotations

from itertools import pairwise

from shared.events import Bound
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.triton.copies import Copy, read_from
from synthesizer_svc.schedule.emit.triton.matrix import Product, product_of
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan
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
    own = {axis: Axis(f"{axis.name}w", axis.extent) for axis in axes}
    copy = Copy(
        load=weight,
        name=f"{group.name}_w",
        kernel=f"{group.name}_pack",
        axes=tuple(own.values()),
        value=ex.rewrite(weight, {axis: ix.of(mine) for axis, mine in own.items()}),
        places=[ix.of(axis) for axis in axes],
    )
    return read_from(plan, group, copy)
