"""The plan's types: groups of fused loops over named axes (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.lazy import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Result goes to element ``offset`` of ``buffer``."""

    buffer: str
    offset: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One node within a row. ``kind``:

    - ``reduce``: fold ``exprs[0]`` over ``inner`` by ``op``; the result is ``row`` (name, component)
    - ``scan``: prefix of ``exprs[0]`` along the one inner axis; the element is ``scan`` name
    - ``value``: ``exprs[0]`` once per row; ``row`` (name, 0)
    - ``store``: ``exprs[0]`` at every inner position

    ``writes`` has one entry per component that leaves the group. Loads hold one linear element offset.
    """

    name: str
    kind: str
    op: str
    inner: tuple[Axis, ...]
    exprs: tuple[Expr, ...]
    dtype: DType
    writes: tuple[Write | None, ...]
    contraction: bool = False

    @property
    def inner_size(self) -> int:
        return prod(a.extent for a in self.inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A row group: ``stages`` in order for every position of ``outer``. ``kind`` is its operator class."""

    name: str
    kind: str
    outer: tuple[Axis, ...]
    stages: tuple[Stage, ...]
    bytes_min: int
    """Buffers read and written, each once."""
    flops: int

    @property
    def rows(self) -> int:
        return prod(a.extent for a in self.outer)

    def loads(self) -> list[Expr]:
        return ex.loads(*(e for s in self.stages for e in s.exprs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is computed: groups in order, over named buffers. ``in0 …`` and ``out0 …`` are the ABI's tensors."""

    buffers: tuple[Buffer, ...]
    groups: tuple[Group, ...]
    operator_class: str
    """Class of the group with the most work, then the others: ``reduction``, ``contraction pointwise`` …"""
    bytes_min: int
    flops_min: int

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.kind == "input")

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.kind == "output")

    @property
    def temps(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.kind == "temp")

    @property
    def kinds(self) -> dict[str, str]:
        """Operator class by group name."""
        return {g.name: g.kind for g in self.groups}
