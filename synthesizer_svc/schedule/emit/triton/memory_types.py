"""Element types of temporaries and of factors of products (pure).

A plan keeps sums of products in float32. Where the factors have 16 bits, so has the product in torch, which rounds it
when it leaves the matrix unit: a temporary of it is kept in 16 bits here, too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.triton.types import HALVES
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.ir import Plan


def narrowed(plan: Plan) -> Plan:
    """``plan`` with products of 16-bit factors kept in 16 bits."""
    types = {b.name: b.dtype for b in plan.buffers}
    temps = {b.name for b in plan.temps}
    wide = wide_buffers(plan)
    for group in plan.groups:
        for stage in group.stages:
            write = stage.writes[0] if stage.writes else None
            if stage.contraction and write is not None and write.buffer in temps:
                narrow = factor_type(stage.exprs[0], types, wide)
                if narrow in HALVES:
                    types[write.buffer] = narrow
    return replace(plan, buffers=tuple(replace(b, dtype=types[b.name]) for b in plan.buffers))


def wide_buffers(plan: Plan) -> frozenset[str]:
    """Buffers of float32 that have that type in torch, too: inputs, and what is computed from them and not rounded."""
    types = {b.name: b.dtype for b in plan.buffers}
    wide = {b.name for b in plan.inputs if b.dtype is DType.F32}
    for stage in (
        s for group in plan.groups for s in group.stages if not s.contraction and s.kind in ("store", "value")
    ):
        write = stage.writes[0]
        if write is not None and types[write.buffer] is DType.F32 and _is_wide(stage.exprs[0], wide):
            wide.add(write.buffer)
    return frozenset(wide)


def factor_type(product: Expr, types: dict[str, DType], wide: Collection[str]) -> DType:
    """What both factors of ``product`` are in torch, which mixes no types: with a factor of float32, the other one was
    widened to it, and rounding either were another product. Else one 16-bit factor tells the other's.
    """
    read = [types[load.attr[0]] for load in ex.loads(product)]
    found = [dtype for dtype in read if dtype in HALVES]
    direct = [types[f.attr[0]] for f in product.args if f.op == "load" and types[f.attr[0]] in HALVES]
    if any(_is_wide(factor, wide) for factor in product.args):
        return product.dtype
    if direct:
        return direct[0]
    return found[0] if found and len(set(read)) == 1 else product.dtype


def _is_wide(factor: Expr, wide: Collection[str]) -> bool:
    """Whether it has 32 bits in torch: it reads one of ``wide`` and is not rounded after that."""
    if factor.op in ("guard", "neg", "max", "min"):
        return any(_is_wide(part, wide) for part in factor.args)
    if factor.op == "round_to" and factor.attr in HALVES:
        return False
    return any(load.attr[0] in wide for load in ex.loads(factor))


def rounded(expr: Expr, dtype: DType, types: dict[str, DType]) -> Expr:
    """``expr`` as memory of ``dtype`` would give it back."""
    if dtype not in (*HALVES, DType.I8, DType.I16, DType.U8) or _exact(expr, dtype, types):
        return expr
    return ex.make("round_to", expr, attr=dtype, dtype=expr.dtype)


def _exact(expr: Expr, dtype: DType, types: dict[str, DType]) -> bool:
    if expr.op == "load":
        return types[expr.attr[0]] is dtype
    if expr.op == "const":
        return expr.attr in (0, 1, float("inf"), float("-inf"))
    if expr.op in ("guard", "neg", "max", "min"):
        return all(_exact(a, dtype, types) for a in expr.args)
    return expr.op == "round_to" and expr.attr is dtype
