"""Lowering of ATen calls, one file per family. ``lower_graph`` walks the captured graph (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.graph import Graph, Unsupported
from synthesizer_svc.schedule.lazy import Builder, Lazy
from synthesizer_svc.schedule.lower import (
    contraction,
    conv,
    creation,
    gather,
    losses,
    normalisation,
    pointwise,
    pooling,
    reductions,
    scans,
    views,
)
from synthesizer_svc.schedule.lower.registry import IGNORED, LOWERINGS, CallContext

FAMILIES = (pointwise, creation, views, reductions, normalisation, scans, contraction, gather, conv, pooling, losses)


def lower_graph(graph: Graph) -> Builder:
    """Nodes and buffers of a captured graph; inputs are buffers ``in0 …``, outputs ``out0 …``.

    Raises:
        Unsupported: naming the ATen call that has no lowering.
    """
    builder = Builder()
    values: dict[tuple[str, int], Lazy] = {}
    for position, entry in enumerate(graph.inputs):
        name = f"in{position}"
        if 0 in entry.type.shape:
            raise Unsupported(entry.name, "has no elements")
        builder.buffer(name, entry.type.shape, entry.type.dtype, "input", entry.type.strides)
        values[entry.name, 0] = builder.read(name)
    for call in graph.calls:
        builder.call = call.op
        name = call.op.removeprefix("aten.").removeprefix("prims.")
        if name in IGNORED:
            continue
        if name not in LOWERINGS:
            raise Unsupported(call.op, "this call has no lowering")
        if call.outputs[0] is not None and 0 in call.outputs[0].shape:
            raise Unsupported(call.op, "a tensor has no elements")
        results = LOWERINGS[name](CallContext(call=call, builder=builder, values=values))
        for position, result in enumerate(results if isinstance(results, tuple) else (results,)):
            values[call.name, position] = result
    builder.call = "output"
    for position, ref in enumerate(graph.outputs):
        if (ref.name, ref.output) not in values:
            raise Unsupported("output", f"{ref.name} is not a tensor this graph computes")
        result = values[ref.name, ref.output]
        builder.buffer(f"out{position}", result.shape, result.dtype, "output")
        builder.store(result, f"out{position}")
    return builder
