"""Temporaries that are computed where they are read: padding, casts and cheap arithmetic before a product (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared.events import Bound
from synthesizer_svc.schedule import bind
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.triton.memory_types import rounded
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group, Plan, Stage, Write
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Decision

INLINE, MEMORY = "inline", "memory"
READERS_MAX = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A group that only fills one temporary, element by element."""

    group: Group
    buffer: Buffer
    expr: Expr
    digits: tuple[tuple[int, Axis], ...]
    """(stride, axis) of the group's domain within the buffer."""

    def at(self, offset: Index, plan: Plan) -> Expr:
        """The element that lies at ``offset`` of the buffer."""
        axes = {axis: (offset // stride) % axis.extent for stride, axis in self.digits}
        types = {b.name: b.dtype for b in plan.buffers}
        return rounded(ex.rewrite(self.expr, axes), self.buffer.dtype, types)

    @property
    def cheap(self) -> bool:
        """Whether reading it often costs less than keeping it."""
        return not any(e.op in ex.COSTLY for e in ex.walk(self.expr))


def source_of(plan: Plan, group: Group) -> Source | None:
    """What ``group`` fills, if it can be computed by its readers."""
    if len(group.stages) != 1 or group.stages[0].kind != "value" or group.stages[0].inner:
        return None
    (stage,) = group.stages
    write = stage.writes[0]
    if write is None or any(e.op in ("row", "scan") for e in ex.walk(*stage.exprs)):
        return None
    buffer = plan.buffer(write.buffer)
    numel = buffer.nbytes // buffer.dtype.itemsize
    found = bind.digits(write.offset, numel)
    writers = [g for g in plan.groups for s in g.stages for w in s.writes if w is not None and w.buffer == buffer.name]
    if buffer.kind != "temp" or found is None or len(writers) != 1:
        return None
    readers = [g for g in plan.groups if any(load.attr[0] == buffer.name for load in g.loads())]
    if not 0 < len(readers) <= READERS_MAX:
        return None
    return Source(group=group, buffer=buffer, expr=stage.exprs[0], digits=tuple(found))


def decision(source: Source) -> Decision:
    return Decision(
        group=source.group.name,
        name="placement",
        values=(INLINE, MEMORY),
        default=INLINE if source.cheap else MEMORY,
        pays_when=(Bound.MEMORY, Bound.LAUNCH),
        why="computed where it is read, it never goes through memory; kept, it is computed once, read in whole lines",
    )


def inlined(plan: Plan, source: Source) -> Plan:
    """``plan`` without the group and the buffer of ``source``."""

    def leaf(expr: Expr) -> Expr | None:
        if expr.op != "load" or expr.attr[0] != source.buffer.name:
            return None
        return source.at(expr.attr[1][0], plan)

    def rewritten(stage: Stage) -> Stage:
        memo: dict[Expr, Expr] = {}

        def inside(expr: object) -> Expr:
            return ex.rewrite(expr, {}, leaf, memo)  # type: ignore[arg-type]

        writes = tuple(
            None if w is None else Write(buffer=w.buffer, offset=w.offset.substitute({}, inside)) for w in stage.writes
        )
        return replace(stage, exprs=tuple(inside(e) for e in stage.exprs), writes=writes)

    groups = tuple(
        replace(g, stages=tuple(rewritten(s) for s in g.stages)) for g in plan.groups if g.name != source.group.name
    )
    return replace(plan, groups=groups, buffers=tuple(b for b in plan.buffers if b.name != source.buffer.name))
