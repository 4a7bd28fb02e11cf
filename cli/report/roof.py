"""The roofline picture: attainable rate against arithmetic intensity, and where the candidates stand (pure).

Roofs are drawn from peaks that the worker's calibration wrote into the evidence (``PEAKS``); where it wrote none, the
operator's own floor is drawn, which was computed from them. Nothing is drawn that was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cli.report.figures import Figure
from search_svc.tree import Node, Tree
from shared.events import Evaluation, Roofline

BANDWIDTH_PREFIX, BANDWIDTH_SUFFIX = "bandwidth_", "_gb_s"
"""Entries ``bandwidth_L1_gb_s`` … ``bandwidth_memory_gb_s`` of an evaluation's environment or diagnosis."""
PEAK = "peak_gflop_s"
"""Entry with the peak arithmetic rate."""
DECADES_AROUND = 1.5


def figure(tree: Tree) -> Figure:
    """The picture, or an empty one when no candidate has both a time and an intensity."""
    points = list(_placed(tree))
    if not points:
        return {}
    node, line, _ = points[0]
    assert node.evaluation is not None, "a placed node was evaluated"
    intensity = line.flops_min / line.bytes_min
    low, high = intensity / 10**DECADES_AROUND, intensity * 10**DECADES_AROUND
    traces = [_candidates(tree, points), *_roofs(node.evaluation, low, high)]
    if line.floor_ns:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "speed of light of this operator",
                "x": [intensity],
                "y": [line.flops_min / line.floor_ns],
                "marker": {"symbol": "line-ew-open", "size": 26, "color": "@accent", "line": {"width": 3}},
                "hovertemplate": "%{y:.1f} GFLOP/s attainable<extra></extra>",
            }
        )
    return {
        "data": traces,
        "layout": {
            "xaxis": {"type": "log", "dtick": "D2", "title": {"text": "FLOP per byte of compulsory traffic"}},
            "yaxis": {"type": "log", "dtick": "D2", "title": {"text": "GFLOP/s"}},
            "height": 380,
            "hovermode": "closest",
        },
    }


def note(tree: Tree) -> str:
    """What stands under the picture, or why there is none."""
    points = list(_placed(tree))
    if not points:
        return "No roofline: no candidate passed with a known operation count and traffic."
    node, line, _ = points[0]
    assert node.evaluation is not None, "a placed node was evaluated"
    floor = f"{line.floor_ns / 1e3:,.1f} µs" if line.floor_ns else "unknown"
    text = (
        f"Compulsory traffic {line.bytes_min / 1e6:,.2f} MB, {line.flops_min / 1e6:,.2f} MFLOP, "
        f"intensity {line.flops_min / line.bytes_min:.2f} FLOP per byte; floor {floor}."
    )
    if not any(True for _ in _peaks(node.evaluation)):
        text += " The calibration's peaks are not part of the evidence, so only the floor they give is drawn."
    return text


def _placed(tree: Tree) -> Iterator[tuple[Node, Roofline, int]]:
    """Passed nodes with everything a point needs, and their time in ns."""
    for node in tree.passed():
        found = node.evaluation
        if found is None or not found.roofline.bytes_min or not found.roofline.flops_min:
            continue
        baselines = {s.baseline for s in found.speedups}
        own = next((t.median_ns for t in found.timings if t.name not in baselines), 0)
        if own:
            yield node, found.roofline, own


def _candidates(tree: Tree, points: list[tuple[Node, Roofline, int]]) -> dict[str, Any]:
    winner = tree.winner_id or tree.best_id
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "candidates",
        "x": [line.flops_min / line.bytes_min for _, line, _ in points],
        "y": [line.flops_min / own for _, line, own in points],  # FLOP per ns is GFLOP/s
        "text": [f"{node.candidate_id}<br>{own / 1e3:,.1f} µs" for node, _, own in points],
        "customdata": [node.candidate_id for node, _, _ in points],
        "hovertemplate": "%{text}<br>%{y:.1f} GFLOP/s<extra></extra>",
        "marker": {
            "symbol": ["star" if node.candidate_id == winner else "circle" for node, _, _ in points],
            "size": [17 if node.candidate_id == winner else 8 for node, _, _ in points],
            "color": ["@accent" if node.candidate_id == winner else "@muted" for node, _, _ in points],
        },
    }


def _peaks(evaluation: Evaluation) -> Iterator[tuple[str, float]]:
    """Measured peaks by entry name; entries that are no number are none."""
    for entry in (*evaluation.environment, *evaluation.diagnosis.evidence):
        is_bandwidth = entry.name.startswith(BANDWIDTH_PREFIX) and entry.name.endswith(BANDWIDTH_SUFFIX)
        if is_bandwidth or entry.name == PEAK:
            try:
                value = float(entry.value)
            except ValueError:
                continue
            if value > 0:
                yield entry.name, value


def _roofs(evaluation: Evaluation, low: float, high: float) -> Iterator[dict[str, Any]]:
    """One sloped line per bandwidth, cut off at the peak, and the peak itself."""
    peaks = dict(_peaks(evaluation))
    peak = peaks.pop(PEAK, 0.0)
    for name, rate in peaks.items():
        level = name.removeprefix(BANDWIDTH_PREFIX).removesuffix(BANDWIDTH_SUFFIX)
        end = min(high, peak / rate) if peak else high
        if end > low:
            yield _line(f"{level} {rate:,.0f} GB/s", [low, end], [low * rate, end * rate], "solid")
    if peak:
        yield _line(f"peak {peak:,.0f} GFLOP/s", [low, high], [peak, peak], "dash")


def _line(name: str, xs: list[float], ys: list[float], dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": xs,
        "y": ys,
        "hoverinfo": "name",
        "line": {"width": 1.5, "dash": dash},
    }
