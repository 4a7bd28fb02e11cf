"""Long sums of few rows over many programs: parts of every row, what joins them, and what follows (pure).

A group becomes up to three. The first, which keeps the name, folds parts of rows into temporaries; ``…_join`` folds the
parts of each row; ``…_rest`` stores what needs a row's result at every element.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from shared.chips import Gpu
from shared.dtypes import DType
from shared.events import Bound
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.triton import folds
from synthesizer_svc.schedule.emit.triton.layout import layout_of
from synthesizer_svc.schedule.emit.triton.matrix import Product, product_of
from synthesizer_svc.schedule.emit.triton.types import blocks
from synthesizer_svc.schedule.expr import Condition, Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group, Plan, Stage, Write
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Decision

ELEMENTS_MIN, ELEMENTS_DEFAULT = 1 << 14, 1 << 18
"""Of all rows: fewer are not worth a launch more, or not by default."""
PART_MIN = 2048
"""Elements of a part, at least; of a matrix product's sum, terms."""
WAVES = 4
TOGETHER = 32
"""Rows of one program where neighbours in memory are rows: a line of float32."""
PARTS_MAX = 1024
SIMPLE = ("sum", "max", "min", "prod", "any", "all")
PARTS = {"softstats": 2, "moments": 2}


def _first_level(stage: Stage) -> bool:
    return not any(e.op in ("row", "scan") for e in ex.walk(*stage.exprs))


def splittable(plan: Plan, group: Group) -> bool:
    """Whether every fold of the group is over the same elements and needs no other one's result."""
    product = product_of(plan, group)
    if product is not None:
        return len(product.k) == 1
    reduced = [s for s in group.stages if s.kind == "reduce"]
    if not reduced or any(s.kind == "scan" for s in group.stages):
        return False
    same = len({s.inner for s in reduced}) == 1 and all(_first_level(s) for s in reduced)
    same = same and len({s.inner for s in group.stages if s.kind == "store"}) <= 1
    return same and all(s.op in (*SIMPLE, *PARTS) for s in reduced)


def decision(plan: Plan, group: Group, gpu: Gpu) -> Decision | None:
    """Into how many parts, where there are too few rows to fill the chip."""
    if not splittable(plan, group):
        return None
    product = product_of(plan, group)
    elements = group.rows * next(s for s in group.stages if s.kind == "reduce").inner_size
    length = elements // group.rows
    programs = _programs(group, product)
    wanted = WAVES * gpu.multiprocessors // programs if product is None else gpu.multiprocessors // programs
    most = min(PARTS_MAX, length // (PART_MIN if product is None else PART_MIN // 4))
    best = 1 << max(0, min(wanted, most).bit_length() - 1)
    if best < 2 or elements < ELEMENTS_MIN:
        return None
    whole = [1] + [p for p in (best // 4, best // 2, best, best * 2, best * 4) if 2 <= p <= most]
    parts = [p for p in dict.fromkeys(whole) if fits(plan, group, p)]
    usual = [p for p in parts if p <= best]
    return Decision(
        group=group.name,
        name="split",
        values=tuple(parts),
        default=usual[-1] if elements >= ELEMENTS_DEFAULT else 1,
        pays_when=(Bound.OCCUPANCY, Bound.LATENCY, Bound.MEMORY),
        why="parts of a long row go to several programs; joining them takes a launch more",
    )


def _programs(group: Group, product: Product | None) -> int:
    """About how many programs there are without a split."""
    if product is None:
        return max(1, blocks(group.rows, TOGETHER if layout_of(group).across else 1))
    m, n, _ = product.sizes
    return max(1, product.batches * blocks(m, 128) * blocks(n, 128))


def fits(plan: Plan, group: Group, parts: int) -> bool:
    """Whether the folds of ``group`` go into so many parts: those of products and of variances are equally long."""
    if not splittable(plan, group):
        return False
    product = product_of(plan, group)
    length = next(s for s in group.stages if s.kind == "reduce").inner_size
    if product is not None or any(s.op == "moments" for s in group.stages):
        return length % parts == 0
    return (parts - 1) * blocks(length, parts) < length


@dataclass
class _Splitter:
    plan: Plan
    group: Group
    parts: int
    buffers: list[Buffer] = field(default_factory=list)
    results: dict[tuple[str, int], Expr] = field(default_factory=dict)
    """What the joining group knows a row's result as."""

    def __post_init__(self) -> None:
        name = self.group.name
        self.inner = next(s for s in self.group.stages if s.kind == "reduce").inner
        self.length = prod(a.extent for a in self.inner)
        self.size = blocks(self.length, self.parts)
        self.part, self.within = Axis(f"{name}s", self.parts), Axis(f"{name}j", self.size)
        self.again = Axis(f"{name}t", self.parts)

    def split(self) -> Plan:
        reduced = [s for s in self.group.stages if s.kind == "reduce"]
        first = replace(
            self.group,
            outer=(*self.group.outer, self.part),
            stages=tuple(self._partial(s) for s in reduced),
        )
        joined: list[Stage] = []
        for stage in self.group.stages:
            if stage.kind == "reduce":
                joined += self._join(stage)
            elif stage.kind == "value":
                joined.append(replace(stage, exprs=tuple(self._known(e) for e in stage.exprs)))
        stored = [s for s in self.group.stages if s.kind == "store"]
        rest = self._rest(stored, joined)
        join = replace(self.group, name=f"{self.group.name}_join", kind="reduction", stages=tuple(joined))
        groups: list[Group] = []
        for one in self.plan.groups:
            groups += [first, join, *rest] if one.name == self.group.name else [one]
        return replace(self.plan, groups=tuple(groups), buffers=(*self.plan.buffers, *self.buffers))

    # ------------------------------------------------------------------ parts

    def _partial(self, stage: Stage) -> Stage:
        position = ix.of(self.part) * self.size + ix.of(self.within)
        strides = ix.contiguous(tuple(a.extent for a in self.inner))
        places = {
            axis: (position // stride) % axis.extent if len(self.inner) > 1 else position
            for axis, stride in zip(self.inner, strides, strict=True)
        }
        exprs = tuple(ex.rewrite(e, places) for e in stage.exprs)
        if self.parts * self.size != self.length:
            exprs = tuple(self._guarded(e, position, stage) for e in exprs)
        count = PARTS.get(stage.op, 1)
        writes = tuple(
            Write(buffer=self._part_buffer(stage, c), offset=self._offset(self.group.outer, self.part))
            for c in range(count)
        )
        return replace(stage, inner=(self.within,), exprs=exprs, writes=writes)

    def _guarded(self, expr: Expr, position: Index, stage: Stage) -> Expr:
        neutral = ex.const(folds.neutral(stage), expr.dtype)
        return ex.make("guard", expr, neutral, attr=(Condition(position, 0, self.length),), dtype=expr.dtype)

    def _part_buffer(self, stage: Stage, component: int) -> str:
        name = f"{self.group.name}_{stage.name}_p{component}"
        shape = (*(a.extent for a in self.group.outer), self.parts)
        self._buffer(name, shape, stage.exprs[0].dtype)
        return name

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: DType) -> None:
        if all(b.name != name for b in self.buffers):
            self.buffers.append(Buffer(name=name, shape=shape, dtype=dtype, strides=ix.contiguous(shape), kind="temp"))

    def _offset(self, outer: tuple[Axis, ...], last: Axis | None) -> Index:
        axes = outer if last is None else (*outer, last)
        return ix.linear(tuple(ix.of(a) for a in axes), ix.contiguous(tuple(a.extent for a in axes)))

    # ------------------------------------------------------------------ joining

    def _join(self, stage: Stage) -> list[Stage]:
        """Folds of the parts, and their results stored where the original stored them."""
        dtype = stage.exprs[0].dtype
        part = [self._load(self._part_buffer(stage, c), dtype) for c in range(PARTS.get(stage.op, 1))]
        if stage.op == "softstats":
            made, results = self._join_softstats(stage, part)
        elif stage.op == "moments":
            made, results = self._join_moments(stage, part)
        else:
            name = f"{stage.name}_join"
            made, results = [self._fold(stage, name, stage.op, part[0])], [_row(name, dtype)]
        for component, result in enumerate(results):
            self.results[stage.name, component] = result
            write = stage.writes[component] if component < len(stage.writes) else None
            if write is not None:
                made.append(self._value(stage, f"{stage.name}_out{component}", result, write))
        return made

    def _load(self, buffer: str, dtype: DType) -> Expr:
        return ex.make("load", attr=(buffer, (self._offset(self.group.outer, self.again),), 0), dtype=dtype)

    def _fold(self, stage: Stage, name: str, op: str, value: Expr) -> Stage:
        return replace(
            stage,
            name=name,
            kind="reduce",
            op=op,
            inner=(self.again,),
            exprs=(value,),
            writes=(None,),
            contraction=False,
        )

    def _value(self, stage: Stage, name: str, value: Expr, write: Write | None = None) -> Stage:
        return replace(
            stage, name=name, kind="value", op="store", inner=(), exprs=(value,), writes=(write,), contraction=False
        )

    def _join_softstats(self, stage: Stage, part: list[Expr]) -> tuple[list[Stage], list[Expr]]:
        dtype, top = stage.exprs[0].dtype, _row(f"{stage.name}_top", stage.exprs[0].dtype)
        shifted = ex.make("sub", part[0], top, dtype=dtype)
        scaled = ex.make("mul", part[1], ex.make("exp_nonpositive", shifted, dtype=dtype), dtype=dtype)
        made = [
            self._fold(stage, f"{stage.name}_top", "max_raw", part[0]),
            self._fold(stage, f"{stage.name}_total", "sum", scaled),
        ]
        return made, [top, _row(f"{stage.name}_total", dtype)]

    def _join_moments(self, stage: Stage, part: list[Expr]) -> tuple[list[Stage], list[Expr]]:
        """Chan, Golub and LeVeque's formula for equally long parts."""
        dtype = stage.exprs[0].dtype
        names = [f"{stage.name}_{n}" for n in ("means", "mean", "within", "between", "squares")]
        means, mean, within, between, squares = (_row(n, dtype) for n in names)
        apart = ex.make("sub", part[0], mean, dtype=dtype)
        spread = ex.make("mul", between, ex.const(self.size, dtype), dtype=dtype)
        made = [
            self._fold(stage, names[0], "sum", part[0]),
            self._value(stage, names[1], ex.make("div", means, ex.const(self.parts, dtype), dtype=dtype)),
            self._fold(stage, names[2], "sum", part[1]),
            self._fold(stage, names[3], "sum", ex.make("mul", apart, apart, dtype=dtype)),
            self._value(stage, names[4], ex.make("add", within, spread, dtype=dtype)),
        ]
        return made, [mean, squares]

    def _known(self, expr: Expr) -> Expr:
        return ex.rewrite(expr, {}, lambda e: self.results.get(e.attr) if e.op == "row" else None)

    # ------------------------------------------------------------------ the rest

    def _rest(self, stored: list[Stage], joined: list[Stage]) -> list[Group]:
        """Element-wise stores, which read rows' results from memory; the joining group writes those."""
        if not stored:
            return []
        kept: dict[Expr, Expr] = {}

        def leaf(expr: Expr) -> Expr | None:
            return self._kept(self.results.get(expr.attr, expr), kept, joined) if expr.op == "row" else None

        stages = tuple(
            replace(s, kind="value", inner=(), exprs=tuple(ex.rewrite(e, {}, leaf) for e in s.exprs)) for s in stored
        )
        outer = (*self.group.outer, *stored[0].inner)
        return [replace(self.group, name=f"{self.group.name}_rest", kind="pointwise", outer=outer, stages=stages)]

    def _kept(self, result: Expr, kept: dict[Expr, Expr], joined: list[Stage]) -> Expr:
        if result not in kept:
            name = f"{self.group.name}_k{len(kept)}"
            self._buffer(name, tuple(a.extent for a in self.group.outer), result.dtype)
            offset = self._offset(self.group.outer, None)
            joined.append(self._value(joined[0], f"{name}_s", result, Write(buffer=name, offset=offset)))
            kept[result] = ex.make("load", attr=(name, (offset,), 0), dtype=result.dtype)
        return kept[result]


def _row(name: str, dtype: DType) -> Expr:
    return ex.make("row", attr=(name, 0), dtype=dtype)


def split(plan: Plan, group: Group, parts: int) -> Plan:
    """``plan`` with the folds of ``group`` in ``parts`` parts."""
    return _Splitter(plan, group, parts).split()
