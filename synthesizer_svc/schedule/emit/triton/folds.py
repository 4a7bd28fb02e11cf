"""Reductions of tiles: where they start, how an element is folded in, how a tile becomes a row's result (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.triton import ops
from synthesizer_svc.schedule.emit.triton.types import TL
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.ir import Stage

LOWEST = "-3.4028234663852886e+38"
"""Where online maxima start: finite, so that no difference of two is NaN."""
FAR = "9223372036854775807"
"""A position behind all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Shape of what is folded, the axis that goes, and whether it is kept with extent 1."""

    shape: str
    axis: int
    keep: bool

    @property
    def folding(self) -> str:
        return f"axis={self.axis}, keep_dims=True" if self.keep else f"axis={self.axis}"


def is_arg(stage: Stage) -> bool:
    return stage.op in ("argmax", "argmin")


def neutral(stage: Stage) -> float:
    """What changes nothing."""
    dtype = stage.exprs[0].dtype
    if stage.op in ("sum", "prod"):
        return 0 if stage.op == "sum" else 1
    if stage.op in ("any", "all"):
        return int(stage.op == "all")
    lowest = stage.op in ("max", "max_raw", "argmax", "softstats")
    if dtype.floating:
        return float("-inf") if lowest else float("inf")
    if dtype is DType.BOOL:
        return int(not lowest)
    bits = 8 * dtype.itemsize - 1
    return -(1 << bits) if lowest else (1 << bits) - 1


def identity(stage: Stage) -> str:
    """The literal of what changes nothing."""
    return ops.literal(neutral(stage), stage.exprs[0].dtype)


def start(stage: Stage, name: str, tile: Tile) -> list[str]:
    """Accumulators of ``stage`` before the first element."""
    kind = TL[stage.exprs[0].dtype]
    if stage.op == "softstats":
        return [f"{name}_top = tl.full({tile.shape}, {LOWEST}, {kind})", f"{name}_sum = tl.zeros({tile.shape}, {kind})"]
    # Finite, so that what is taken from it is: a part of a row may be nothing but -inf.
    first = LOWEST if stage.op == "max_raw" else identity(stage)
    lines = [f"{name} = tl.full({tile.shape}, {first}, {kind})"]
    if is_arg(stage):
        lines.append(f"{name}_at = tl.full({tile.shape}, {FAR}, tl.int64)")
    return lines


def step(stage: Stage, name: str, x: str, position: str = "") -> list[str]:
    """Fold ``x`` into the accumulators, position by position."""
    dtype = stage.exprs[0].dtype
    if stage.op == "softstats":
        return [
            f"{name}_d = {x} - {name}_top",
            f"{name}_e = tl.exp(-tl.abs({name}_d))",
            f"{name}_sum = tl.where({name}_d > 0, {name}_sum * {name}_e + 1.0, {name}_sum + {name}_e)",
            f"{name}_top = tl.maximum({name}_top, {x})",
        ]
    if is_arg(stage):
        sign = ">" if stage.op == "argmax" else "<"
        better = f"({x} {sign} {name})"
        if dtype.floating:
            better += f" | (({x} != {x}) & ({name} == {name}))"
        # The first element is taken whatever it is: it may equal the start.
        return [
            f"{name}_better = {better} | ({name}_at == {FAR})",
            f"{name}_at = tl.where({name}_better, {position}, {name}_at)",
            f"{name} = tl.where({name}_better, {x}, {name})",
        ]
    return [f"{name} = {combined(stage, name, x)}"]


def chunked_start(stage: Stage, name: str, tile: Tile) -> list[str]:
    """Online statistics with one maximum for a row: it is folded chunk by chunk, and lanes keep sums."""
    kind = TL[stage.exprs[0].dtype]
    return [
        f"{name}_top = tl.max(tl.full({tile.shape}, {LOWEST}, {kind}), {tile.folding})",
        f"{name}_sum = tl.zeros({tile.shape}, {kind})",
    ]


def chunked_step(name: str, x: str, tile: Tile) -> list[str]:
    """One exponential an element, and a multiplication and addition: half of what lanes with own maxima need."""
    return [
        f"{name}_x = {x}",
        f"{name}_next = tl.maximum({name}_top, tl.max({name}_x, {tile.folding}))",
        f"{name}_sum = {name}_sum * tl.exp({name}_top - {name}_next) + tl.exp({name}_x - {name}_next)",
        f"{name}_top = {name}_next",
    ]


def chunked_finish(name: str, tile: Tile) -> tuple[str, str]:
    """Maximum and sum."""
    return f"{name}_top", f"tl.sum({name}_sum, {tile.folding})"


def combined(stage: Stage, a: str, b: str) -> str:
    """Two partial results as one."""
    dtype = stage.exprs[0].dtype
    if stage.op in ("sum", "prod"):
        return f"{a} {'+' if stage.op == 'sum' else '*'} {b}"
    if stage.op in ("any", "all"):
        return f"{a} {'|' if stage.op == 'any' else '&'} {b}"
    if stage.op == "max_raw":
        return f"tl.maximum({a}, {b})"
    if stage.op in ("max", "min"):
        return ops.extremum(stage.op, dtype, a, b)
    raise Unsupported(stage.op, "this reduction has no form in Triton")


def finish(stage: Stage, name: str, tile: Tile) -> tuple[list[str], tuple[str, ...]]:
    """Statements that fold the accumulators along the tile's axis, and the results' texts, one per component."""
    dtype, folding = stage.exprs[0].dtype, tile.folding
    if stage.op == "softstats":
        lines = [
            f"{name}_m = tl.max({name}_top, {folding})",
            f"{name}_s = tl.sum({name}_sum * tl.exp({name}_top - {name}_m), {folding})",
        ]
        return lines, (f"{name}_m", f"{name}_s")
    if is_arg(stage):
        return _finish_arg(stage, name, folding)
    if stage.op in ("any", "all"):
        fold = "max" if stage.op == "any" else "min"
        return [], (f"tl.{fold}({name}.to(tl.int32), {folding}) > 0",)
    if stage.op == "sum":
        return [], (f"tl.sum({name}, {folding})",)
    if stage.op == "prod":
        return [], (f"tl.reduce({name}, {tile.axis}, multiplied, keep_dims={tile.keep})",)
    fold = "min" if stage.op == "min" else "max"
    text = f"tl.{fold}({name}, {folding})"
    if dtype is DType.BOOL:
        return [], (f"tl.{fold}({name}.to(tl.int32), {folding}) > 0",)
    if dtype.floating and stage.op != "max_raw":
        # Triton's own fold passes NaN by.
        nan = f"tl.max(({name} != {name}).to(tl.int32), {folding}) > 0"
        return [f"{name}_nan = {nan}"], (f"tl.where({name}_nan, {ops.NAN}, {text})",)
    return [], (text,)


def _finish_arg(stage: Stage, name: str, folding: str) -> tuple[list[str], tuple[str, ...]]:
    """The first position of the extremum, or of NaN where there is one."""
    fold = "max" if stage.op == "argmax" else "min"
    lines = [f"{name}_best = tl.{fold}({name}, {folding})", f"{name}_pick = {name} == {name}_best"]
    if stage.exprs[0].dtype.floating:
        nan = f"tl.max(({name} != {name}).to(tl.int32), {folding}) > 0"
        lines += [f"{name}_nan = {nan}", f"{name}_pick = tl.where({name}_nan, {name} != {name}, {name}_pick)"]
    return lines, (f"tl.min(tl.where({name}_pick, {name}_at, {FAR}), {folding})",)
