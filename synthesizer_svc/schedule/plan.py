"""From captured graph to plan: lower, fuse, make indices linear, merge axes, count bytes and flops (pure)."""

from __future__ import annotations

from math import prod

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.collapse import collapse
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.fuse import Cluster, fuse, inner_axes
from synthesizer_svc.schedule.graph import Graph, Unsupported
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan, Stage, Write
from synthesizer_svc.schedule.lazy import Buffer, Builder, Node, compute_type
from synthesizer_svc.schedule.lower import lower_graph

MAX_DIMS = 8


def build(graph: Graph) -> Plan:
    """Plan a captured operator.

    Raises:
        Unsupported: naming the ATen call that has no lowering, or a limit of the C ABI that is exceeded.
    """
    for entry in graph.inputs:
        if len(entry.type.shape) > MAX_DIMS:
            raise Unsupported(entry.name, f"has more than {MAX_DIMS} dimensions")
    builder = lower_graph(graph)
    clusters = fuse(_only_needed(builder))
    groups = tuple(_group(builder, clusters, place) for place in range(len(clusters)))
    used = {w.buffer for g in groups for s in g.stages for w in s.writes if w is not None}
    buffers = tuple(b for b in builder.buffers.values() if b.kind == "input" or b.name in used)
    outside = sum(b.nbytes for b in buffers if b.kind != "temp" and (b.kind == "output" or _is_read(b, groups)))
    order = sorted(groups, key=lambda g: -(g.bytes_min + g.flops))
    return Plan(
        buffers=buffers,
        groups=groups,
        operator_class=" ".join(dict.fromkeys(g.kind for g in order)),
        bytes_min=outside,
        flops_min=sum(g.flops for g in groups),
    )


def _is_read(buffer: Buffer, groups: tuple[Group, ...]) -> bool:
    return any(load.attr[0] == buffer.name for g in groups for load in g.loads())


def _only_needed(builder: Builder) -> Builder:
    """Nodes that an output depends on; captured graphs compute by-products (mean and rstd of a norm)."""
    needed = {b.name for b in builder.buffers.values() if b.kind == "output"}
    kept: list[Node] = []
    for node in reversed(builder.nodes):
        if needed & set(node.buffers):
            kept.append(node)
            needed |= {load.attr[0] for load in ex.loads(*node.exprs)}
    builder.nodes = kept[::-1]
    return builder


def _group(builder: Builder, clusters: list[Cluster], place: int) -> Group:
    cluster = clusters[place]
    local = {buffer: (node, component) for node in cluster.nodes for component, buffer in enumerate(node.buffers)}
    outside = {
        load.attr[0] for p, c in enumerate(clusters) if p != place for n in c.nodes for load in ex.loads(*n.exprs)
    }
    stages: list[Stage] = []
    inlined: dict[str, Expr] = {}
    for node in cluster.nodes:
        stage = _stage(builder, cluster, node, local, inlined, outside)
        stages.append(stage)
    live = _live(tuple(stages))
    outer, final = collapse(cluster.outer, live)
    return _measured(builder, f"g{place}", outer, final, _windowed(cluster))


def _stage(
    builder: Builder,
    cluster: Cluster,
    node: Node,
    local: dict[str, tuple[Node, int]],
    inlined: dict[str, Expr],
    outside: set[str],
) -> Stage:
    def leaf(expr: Expr) -> Expr | None:
        if expr.op != "load":
            return None
        buffer, indices, _ = expr.attr
        if buffer in inlined:
            return inlined[buffer]
        if buffer in local:
            producer, component = local[buffer]
            if producer.kind == "scan":
                return ex.make("scan", attr=producer.name, dtype=expr.dtype)
            return ex.make("row", attr=(producer.name, component), dtype=expr.dtype)
        offset = ix.linear(indices, builder.buffers[buffer].strides)
        return ex.make("load", attr=(buffer, (offset,), 0), dtype=expr.dtype)

    exprs = tuple(ex.rewrite(e, {}, leaf) for e in node.exprs)
    inner = inner_axes(node, cluster.outer)
    kind = "value" if node.kind == "store" and not inner else node.kind
    writes: list[Write | None] = []
    for buffer in node.buffers:
        target = builder.buffers[buffer]
        leaves = target.kind == "output" or buffer in outside
        # Offsets are linearised by the same rewrite as loads, so that indirect terms inside them are too.
        offset = ix.linear(node.where, target.strides)
        writes.append(Write(buffer=buffer, offset=offset) if leaves else None)
        if node.kind == "store" and inner:
            inlined[buffer] = exprs[0]
    return Stage(
        name=node.name,
        kind=kind,
        op=node.op,
        inner=inner,
        exprs=exprs,
        writes=tuple(writes),
        contraction=node.contraction,
        dtype=DType.I64 if node.op in ("argmax", "argmin") else compute_type(builder.buffers[node.buffers[0]].dtype),
    )


def _live(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Stages that leave the group or that a later one uses."""
    kept: list[Stage] = []
    used: set[str] = set()
    for stage in reversed(stages):
        if any(stage.writes) or stage.name in used:
            kept.append(stage)
            for expr in ex.walk(*stage.exprs):
                if expr.op == "row":
                    used.add(expr.attr[0])
                elif expr.op == "scan":
                    used.add(expr.attr)
    return tuple(reversed(kept))


def _windowed(cluster: Cluster) -> bool:
    """Whether some operand is read through overlapping windows: one index mixes kept and reduced axes."""
    for node in cluster.nodes:
        for load in ex.loads(*node.exprs):
            for index in load.attr[1]:
                axes = set(index.axes())
                if node.kind == "reduce" and axes & set(node.inner) and axes & set(node.axes):
                    return True
    return False


def _measured(builder: Builder, name: str, outer: tuple[Axis, ...], stages: tuple[Stage, ...], windowed: bool) -> Group:
    reads = {load.attr[0]: None for s in stages for load in ex.loads(*s.exprs)}
    writes = {w.buffer: None for s in stages for w in s.writes if w is not None}
    rows = prod(a.extent for a in outer)
    flops = sum(rows * s.inner_size * (ex.flops(*s.exprs) + (1 if s.kind in ("reduce", "scan") else 0)) for s in stages)
    return Group(
        name=name,
        kind=_kind(stages, windowed),
        outer=outer,
        stages=stages,
        flops=flops,
        bytes_min=sum(builder.buffers[b].nbytes for b in {**reads, **writes}),
    )


def _kind(stages: tuple[Stage, ...], windowed: bool) -> str:
    if any(s.contraction for s in stages):
        return "contraction"
    if any(s.kind == "scan" for s in stages):
        return "scan"
    if any(s.kind == "reduce" for s in stages):
        return "window" if windowed else "reduction"
    indirect = any(
        isinstance(t, ix.Indirect)
        for s in stages
        for load in ex.loads(*s.exprs)
        for i in load.attr[1]
        for t in i.walk()
    )
    return "gather" if indirect else "pointwise"
