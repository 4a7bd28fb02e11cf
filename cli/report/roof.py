"""Where candidates stand against what the machine can do: a roofline, or rates of traffic where operations are unknown.

Pure. The roofs are those the evaluator's floors were computed with, i.e. calibrated on the worker: compulsory traffic
over its floor is the bandwidth that data of this size can have, operations over their floor the peak rate. Nothing is
drawn that was not measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cli.report.figures import Figure
from search_svc.tree import Node, Tree
from shared.events import Diagnosis

MEMORY_FLOOR, COMPUTE_FLOOR = "memory_floor_ns", "compute_floor_ns"
"""Entries of the diagnosis: a number of nanoseconds, then words."""
DECADES_AROUND = 1.5
_NUMBER = re.compile(r"\s*(\d+)")
_LEVEL = re.compile(r"reaches (\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A candidate with a time and known traffic. ``flops_min`` and the floors (ns) are 0 when unknown."""

    node: Node
    own_ns: int
    bytes_min: int
    flops_min: int
    memory_ns: int
    compute_ns: int
    level: str


def figure(tree: Tree) -> Figure:
    """The picture; empty when no candidate passed with known traffic."""
    points = list(_placed(tree))
    if not points:
        return {}
    return _roofline(tree, points) if points[0].flops_min else _traffic(tree, points)


def note(tree: Tree) -> str:
    """What stands under the picture, or why there is none."""
    first = next(_placed(tree), None)
    if first is None:
        timed = "" if tree.reference is None else f", and costs are {tree.reference.basis.value}, not times"
        return f"No roofline: no candidate passed with known traffic{timed}."
    parts = [f"Compulsory traffic {first.bytes_min / 1e6:,.2f} MB"]
    if first.flops_min:
        parts.append(f"{first.flops_min / 1e6:,.2f} MFLOP, {first.flops_min / first.bytes_min:.2f} FLOP per byte")
    else:
        parts.append("operations not counted, so rates of traffic are shown")
    if first.memory_ns:
        parts.append(f"traffic takes at least {first.memory_ns / 1e3:,.1f} µs from {first.level or 'memory'}")
    if first.compute_ns:
        parts.append(f"arithmetic at least {first.compute_ns / 1e3:,.1f} µs")
    if not first.memory_ns and not first.compute_ns:
        parts.append("peaks not calibrated, so no roof is drawn")
    return "; ".join(parts) + "."


def _placed(tree: Tree) -> Iterator[Placed]:
    for node in tree.passed():
        found = node.evaluation
        if found is None or not found.roofline.bytes_min:
            continue
        baselines = {s.baseline for s in found.speedups}
        own_ns = next((t.median_ns for t in found.timings if t.name not in baselines), 0)
        if own_ns:
            memory_ns, level = _floor(found.diagnosis, MEMORY_FLOOR)
            yield Placed(
                node=node,
                own_ns=own_ns,
                bytes_min=found.roofline.bytes_min,
                flops_min=found.roofline.flops_min,
                memory_ns=memory_ns,
                compute_ns=_floor(found.diagnosis, COMPUTE_FLOOR)[0],
                level=level,
            )


def _floor(diagnosis: Diagnosis, name: str) -> tuple[int, str]:
    """Nanoseconds of the floor ``name`` and the memory level it names; (0, "") when it was not available."""
    text = next((entry.value for entry in diagnosis.evidence if entry.name == name), "")
    number, level = _NUMBER.match(text), _LEVEL.search(text)
    return int(number[1]) if number else 0, level[1] if level else ""


def _roofline(tree: Tree, points: list[Placed]) -> Figure:
    first = points[0]
    intensity = first.flops_min / first.bytes_min
    low, high = intensity / 10**DECADES_AROUND, intensity * 10**DECADES_AROUND
    # FLOP per ns is GFLOP/s, bytes per ns are GB/s
    peak = first.flops_min / first.compute_ns if first.compute_ns else 0.0
    rate = first.bytes_min / first.memory_ns if first.memory_ns else 0.0
    traces = [
        _candidates(tree, points, [p.flops_min / p.bytes_min for p in points], [p.flops_min / p.own_ns for p in points])
    ]
    if rate:
        end = max(low, min(high, peak / rate)) if peak else high
        traces.append(_line(f"{_level(first)} {rate:,.1f} GB/s", [low, end], [low * rate, end * rate], "solid"))
    if peak:
        start = max(low, min(high, peak / rate)) if rate else low
        traces.append(_line(f"peak {peak:,.1f} GFLOP/s", [start, high], [peak, peak], "dash"))
    return _figure(
        traces,
        {"type": "log", "dtick": "D2", "title": {"text": "FLOP per byte of compulsory traffic"}},
        {"type": "log", "dtick": "D2", "title": {"text": "GFLOP/s"}},
    )


def _traffic(tree: Tree, points: list[Placed]) -> Figure:
    order = {name: float(n) for n, name in enumerate(tree.verdicts, start=1)}
    xs = [order.get(p.node.candidate_id, 0.0) for p in points]
    traces = [_candidates(tree, points, xs, [p.bytes_min / p.own_ns for p in points])]
    first = points[0]
    if first.memory_ns:
        rate = first.bytes_min / first.memory_ns
        traces.append(_line(f"{_level(first)} {rate:,.1f} GB/s", [0.0, max(xs)], [rate, rate], "solid"))
    return _figure(
        traces,
        {"title": {"text": "evaluations"}, "rangemode": "tozero"},
        {"title": {"text": "GB/s of compulsory traffic"}, "rangemode": "tozero"},
    )


def _level(point: Placed) -> str:
    return f"roof of {point.level}" if point.level else "roof of memory"


def _figure(traces: list[dict[str, Any]], xaxis: dict[str, Any], yaxis: dict[str, Any]) -> Figure:
    return {"data": traces, "layout": {"xaxis": xaxis, "yaxis": yaxis, "height": 380, "hovermode": "closest"}}


def _candidates(tree: Tree, points: list[Placed], xs: list[float], ys: list[float]) -> dict[str, Any]:
    best = tree.winner_id or tree.best_id
    chosen = [p.node.candidate_id == best for p in points]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "candidates",
        "x": xs,
        "y": ys,
        "text": [f"{p.node.candidate_id}<br>{p.own_ns / 1e3:,.1f} µs" for p in points],
        "customdata": [p.node.candidate_id for p in points],
        "hovertemplate": "%{text}<br>%{y:.1f}<extra></extra>",
        "marker": {
            "symbol": ["star" if is_best else "circle" for is_best in chosen],
            "size": [17 if is_best else 8 for is_best in chosen],
            "color": ["@accent" if is_best else "@muted" for is_best in chosen],
        },
    }


def _line(name: str, xs: list[float], ys: list[float], dash: str) -> dict[str, Any]:
    line = {"width": 2, "dash": dash, "color": "@link"}
    return {"type": "scatter", "mode": "lines", "name": name, "x": xs, "y": ys, "hoverinfo": "name", "line": line}
