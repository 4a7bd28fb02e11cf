"""Fusion: which nodes share a row group (pure).

A row group runs over *outer* axes; for each outer position its nodes run over their inner axes one after the other. A
node joins the group of the results it needs when it needs them at its own row (or, of a scan, at its own element).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from synthesizer_svc.schedule import bind
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.lazy import Builder, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes of one row group. ``outer`` is the first node's kept axes."""

    outer: tuple[Axis, ...]
    nodes: tuple[Node, ...]

    def rewritten(self, axes: dict[Axis, Index]) -> Cluster:
        if not axes:
            return self
        outer: list[Axis] = []
        for axis in self.outer:
            outer.extend(axes[axis].axes() if axis in axes else (axis,))
        return Cluster(outer=tuple(outer), nodes=tuple(n.rewritten(axes) for n in self.nodes))


@dataclass
class Fuser:
    """Clusters in execution order; ``home`` says which clusters write a buffer."""

    builder: Builder
    clusters: list[Cluster] = field(default_factory=list)
    home: dict[str, list[int]] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        needs = [position for load in ex.loads(*node.exprs) for position in self.home.get(_buffer(load), ())]
        place = self._join(max(needs), node) if needs else self._join_sibling(node)
        if place is None:
            place = len(self.clusters)
            self.clusters.append(Cluster(outer=node.axes, nodes=(node,)))
        for buffer in node.buffers:
            self.home.setdefault(buffer, []).append(place)

    def _join(self, place: int, node: Node) -> int | None:
        joined = join(self.clusters[place], node, self.builder)
        if joined is None:
            return None
        self.clusters[place] = joined
        return place

    def _join_sibling(self, node: Node) -> int | None:
        """Nodes over one domain that read one buffer share its loads."""
        reads = {_buffer(load) for load in ex.loads(*node.exprs)}
        for place, cluster in enumerate(self.clusters):
            first = cluster.nodes[0]
            same = [a.extent for a in first.axes] == [a.extent for a in node.axes]
            same = (
                same and [a.extent for a in first.inner] == [a.extent for a in node.inner] and first.kind == node.kind
            )
            if not same or node.contraction or first.contraction:
                continue
            renamed = {
                a: ix.of(b)
                for a, b in zip((*node.axes, *node.inner), (*first.axes, *first.inner), strict=True)
                if a != b
            }
            candidate = node.rewritten(renamed)
            mine = set(ex.loads(*candidate.exprs))
            if reads & {_buffer(load) for load in ex.loads(*first.exprs)} and mine & set(ex.loads(*first.exprs)):
                self.clusters[place] = Cluster(outer=cluster.outer, nodes=(*cluster.nodes, candidate))
                return place
        return None


def fuse(builder: Builder) -> list[Cluster]:
    fuser = Fuser(builder=builder)
    for node in builder.nodes:
        fuser.add(node)
    return fuser.clusters


def join(cluster: Cluster, node: Node, builder: Builder) -> Cluster | None:
    """The cluster with ``node`` in it, axes unified; None when the node needs more than its own row."""
    producers = {buffer: position for position, n in enumerate(cluster.nodes) for buffer in n.buffers}
    needed = {_buffer(load) for load in ex.loads(*node.exprs)} & producers.keys()
    for buffer in sorted(needed):
        shape = builder.buffers[buffer].shape
        for _ in range(64):
            mismatch = _mismatch(cluster, node, buffer, producers[buffer], shape)
            if mismatch is None:
                break
            binding = bind.unify(*mismatch, prod(shape), builder.axis)
            if binding is None or not (binding.producer or binding.consumer):
                return None
            cluster, node = cluster.rewritten(binding.producer), node.rewritten(binding.consumer)
    if any(_mismatch(cluster, node, b, producers[b], builder.buffers[b].shape) for b in needed):
        return None
    return _admitted(cluster, node, builder)


def _mismatch(
    cluster: Cluster, node: Node, buffer: str, place: int, shape: tuple[int, ...]
) -> tuple[Index, Index] | None:
    """Where the producer writes and the node first reads something else."""
    strides = ix.contiguous(shape)
    written = ix.linear(cluster.nodes[place].where, strides)
    for load in ex.loads(*node.exprs):
        if _buffer(load) == buffer:
            read = ix.linear(load.attr[1], strides)
            if read != written:
                return written, read
    return None


def _admitted(cluster: Cluster, node: Node, builder: Builder) -> Cluster | None:
    outer = set(cluster.outer)
    if any(n.contraction for n in cluster.nodes) and (node.kind != "store" or set(node.axes) != outer):
        return None
    if node.contraction or not outer <= set(node.axes) or outer & set(node.inner):
        return None
    if node.kind != "store" and set(node.axes) != outer:
        return None
    free = node.inner if node.kind != "store" else tuple(a for a in node.axes if a not in outer)
    for other in cluster.nodes:
        theirs = inner_axes(other, cluster.outer)
        if not theirs or set(theirs) & set(free) or prod(a.extent for a in theirs) != prod(a.extent for a in free):
            continue
        size = prod(a.extent for a in free)
        binding = bind.unify(bind.row_major(theirs), bind.row_major(free), size, builder.axis)
        if binding is not None:
            cluster, node = cluster.rewritten(binding.producer), node.rewritten(binding.consumer)
            break
    return Cluster(outer=cluster.outer, nodes=(*cluster.nodes, node))


def inner_axes(node: Node, outer: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Axes a node runs over within a row."""
    return node.inner if node.kind != "store" else tuple(a for a in node.axes if a not in outer)


def _buffer(load: Expr) -> str:
    buffer: str = load.attr[0]
    return buffer
