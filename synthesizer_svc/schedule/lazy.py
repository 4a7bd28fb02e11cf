"""Lazy tensors and the nodes they are realised into (pure).

A lazy tensor is a function from indices to a scalar expression, so pointwise calls, views and broadcasts cost nothing
and compose. Reductions, scans and outputs are *nodes*: results that exist in memory or in a row group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.index import Axis, Index

Indices = tuple[Index, ...]

COMPUTE = {DType.F16: DType.F32, DType.BF16: DType.F32, DType.I8: DType.I32, DType.I16: DType.I32, DType.U8: DType.I32}
COMPONENTS = {"moments": 2, "softstats": 2}


def compute_type(dtype: DType) -> DType:
    """The type arithmetic on elements of ``dtype`` is done in."""
    return COMPUTE.get(dtype, dtype)


class Lazy:
    """A tensor of ``shape`` and ``dtype`` whose elements are expressions of type ``compute_type(dtype)``."""

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, at: Callable[[Indices], Expr], *, plain: bool = False
    ) -> None:
        self.shape, self.dtype, self.plain = shape, dtype, plain
        self._at = at
        self._seen: dict[Indices, Expr] = {}

    def at(self, indices: Indices) -> Expr:
        """The element at ``indices``, one per dimension."""
        if indices not in self._seen:
            self._seen[indices] = self._at(indices)
        return self._seen[indices]

    @property
    def numel(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Memory: a kernel input, an output, or a temporary. ``strides`` in elements; all but inputs are contiguous."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...]
    kind: str

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A realised result. ``axes`` span the result, ``inner`` what is reduced or scanned over, ``where`` its indices.

    ``kind``: ``reduce``, ``scan`` or ``store``. ``op``: the reduction or scan. ``exprs``: what is reduced, scanned or
    stored (arg-reductions have the position as a second expression). ``buffers``: one per component.
    """

    name: str
    kind: str
    op: str
    axes: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    exprs: tuple[Expr, ...]
    where: Indices
    buffers: tuple[str, ...]
    contraction: bool = False

    def rewritten(self, axes: dict[Axis, Index]) -> Node:
        """The node with its axes split or renamed; new axes take the place of old ones."""
        memo: dict[Expr, Expr] = {}

        def same(e: Any) -> Expr:
            return ex.rewrite(e, axes, memo=memo)

        return replace(
            self,
            axes=_replaced(self.axes, axes),
            inner=_replaced(self.inner, axes),
            exprs=tuple(same(e) for e in self.exprs),
            where=tuple(w.substitute(axes, same) for w in self.where),
        )


def _replaced(old: tuple[Axis, ...], axes: dict[Axis, Index]) -> tuple[Axis, ...]:
    out: list[Axis] = []
    for axis in old:
        out.extend(axes[axis].axes() if axis in axes else (axis,))
    return tuple(out)


@dataclass
class Builder:
    """Collects buffers and nodes while calls are lowered. ``call`` is the ATen call at work, for refusals."""

    buffers: dict[str, Buffer] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    call: str = ""
    _axes: int = 0

    def refuse(self, why: str) -> Unsupported:
        return Unsupported(self.call, why)

    def axis(self, extent: int) -> Axis:
        self._axes += 1
        return Axis(f"a{self._axes}", extent)

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: DType, kind: str, strides: tuple[int, ...] | None = None
    ) -> None:
        self.buffers[name] = Buffer(
            name=name, shape=shape, dtype=dtype, strides=strides or ix.contiguous(shape), kind=kind
        )

    def read(self, name: str, component: int = 0) -> Lazy:
        """A lazy view of a buffer."""
        buffer = self.buffers[name]
        dtype = compute_type(buffer.dtype)
        return Lazy(buffer.shape, buffer.dtype, lambda idx: ex.load(name, idx, dtype, component), plain=True)

    def reduce(
        self, op: str, x: Lazy, dims: tuple[int, ...], dtype: DType, *, contraction: bool = False
    ) -> tuple[Lazy, ...]:
        """Reduce ``dims`` away. One lazy result per component of ``op`` (moments: mean and sum of squared deviations;
        softstats: maximum and sum of exponentials).
        """
        axes = tuple(self.axis(extent) for extent in x.shape)
        indices = tuple(ix.of(a) for a in axes)
        kept = tuple(d for d in range(len(x.shape)) if d not in dims)
        exprs = [x.at(indices)]
        if op in ("argmax", "argmin"):
            inner_shape = tuple(x.shape[d] for d in dims)
            exprs.append(ex.position(ix.linear(tuple(indices[d] for d in dims), ix.contiguous(inner_shape))))
        shape = tuple(x.shape[d] for d in kept)
        name = f"{op}{len(self.nodes)}"
        buffers = tuple(f"{name}_{c}" if op in COMPONENTS else name for c in range(COMPONENTS.get(op, 1)))
        for buffer in buffers:
            self.buffer(buffer, shape, dtype, "temp")
        node = Node(
            name=name,
            kind="reduce",
            op=op,
            axes=_looped(axes[d] for d in kept),
            inner=_looped(axes[d] for d in dims),
            exprs=tuple(exprs),
            where=tuple(indices[d] for d in kept),
            buffers=buffers,
            contraction=contraction,
        )
        self.nodes.append(split_axes(node, self))
        return tuple(self.read(buffer) for buffer in buffers)

    def scan(self, op: str, x: Lazy, dim: int, dtype: DType) -> Lazy:
        """Inclusive scan along ``dim``."""
        axes = tuple(self.axis(extent) for extent in x.shape)
        indices = tuple(ix.of(a) for a in axes)
        name = f"{op}{len(self.nodes)}"
        self.buffer(name, x.shape, dtype, "temp")
        node = Node(
            name=name,
            kind="scan",
            op=op,
            axes=_looped(a for d, a in enumerate(axes) if d != dim),
            inner=_looped((axes[dim],)),
            exprs=(x.at(indices),),
            where=indices,
            buffers=(name,),
        )
        self.nodes.append(node)
        return self.read(name)

    def store(self, x: Lazy, buffer: str, offsets: tuple[int, ...] | None = None) -> None:
        """Write ``x`` into ``buffer``, shifted by ``offsets``."""
        axes = tuple(self.axis(extent) for extent in x.shape)
        indices = tuple(ix.of(a) for a in axes)
        where = tuple(i + o for i, o in zip(indices, offsets or (0,) * len(axes), strict=True))
        node = Node(
            name=f"store{len(self.nodes)}",
            kind="store",
            op="store",
            axes=_looped(axes),
            inner=(),
            exprs=(x.at(indices),),
            where=where,
            buffers=(buffer,),
        )
        self.nodes.append(split_axes(node, self))

    def realise(self, x: Lazy) -> Lazy:
        """``x`` kept in memory, where recomputing it for every use would cost more than reading it back."""
        name = f"temp{len(self.nodes)}"
        self.buffer(name, x.shape, x.dtype, "temp")
        self.store(x, name)
        return self.read(name)


def _looped(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Axes that need a loop."""
    return tuple(a for a in axes if a.extent != 1)


def split_axes(node: Node, builder: Builder) -> Node:
    """Split the axes that occur divided (``c // 4``, ``c % 4``), so that indices become affine again."""
    for _ in range(8):
        divisors = _divisors(node)
        if not divisors:
            return node
        axes: dict[Axis, Index] = {}
        for axis, by in divisors.items():
            outer, inner = builder.axis(axis.extent // by), builder.axis(by)
            axes[axis] = ix.of(outer) * by + ix.of(inner)
        node = node.rewritten(axes)
    return node


def _divisors(node: Node) -> dict[Axis, int]:
    """For each axis that is divided on its own: the smallest proper divisor it is divided by."""
    found: dict[Axis, int] = {}
    mine = {*node.axes, *node.inner}
    for expr in ex.walk(*node.exprs):
        for index in ex.indices_of(expr):
            for term in index.walk():
                if isinstance(term, ix.Div | ix.Mod) and len(term.inner.terms) == 1 and term.inner.const == 0:
                    ((axis, coefficient),) = term.inner.terms.items()
                    if isinstance(axis, Axis) and axis in mine and coefficient == 1 and axis.extent % term.by == 0:
                        found[axis] = min(found.get(axis, term.by), term.by)
    return found
