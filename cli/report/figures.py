"""Pictures of a search as Plotly figures in plain data: the tree and the progress curves (pure).

Colours that begin with ``@`` name variables of the style sheet; the page's script puts their values in, so that one
figure serves light and dark.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cli import estimates
from cli.report.layout import ROOT, Position, positions
from cli.report.tables import reason, speedup_text
from search_svc.tree import Node, Tree
from shared.events import PPM

Figure = dict[str, Any]
NODE_PX, NODE_PX_MIN, PAGE_PX, LEVEL_PX = 12, 4, 1080, 64
"""Room for a leaf across, shrinking to the least as leaves fill the page, and for a generation down; wider trees
scroll."""
MARK_PX = (5, 11)
"""Smallest and largest mark of a node."""
HOVER_CHARS_MAX = 160


def tree(searched: Tree) -> Figure:
    """The search tree: edges, then nodes by what became of them; a passed node's colour is its speedup."""
    if not searched.nodes:
        return {}
    places = positions(searched)
    deepest = max(depth for _, depth in places.values())
    leaves = max(across for across, _ in places.values()) + 1
    room = min(float(NODE_PX), max(float(NODE_PX_MIN), PAGE_PX / leaves))
    mark = min(MARK_PX[1], max(MARK_PX[0], round(room)))
    nodes = list(searched.nodes.values())
    title = searched.reference.basis.value if searched.reference else "speedup"
    kinds: tuple[tuple[str, Callable[[Node], bool], dict[str, Any]], ...] = (
        ("passed", lambda n: n.passed, _scale([n for n in nodes if n.passed], mark, title)),
        ("failed", lambda n: n.failed, {"symbol": "x", "color": "@bad", "size": mark - 1}),
        (
            "not judged",
            lambda n: not n.passed and not n.failed,
            {"symbol": "circle-open", "color": "@muted", "size": mark - 1},
        ),
    )
    traces = [_edges(searched, places, first=True), _edges(searched, places, first=False)]
    for name, belongs, marker in kinds:
        if chosen := [n for n in nodes if belongs(n)]:
            traces.append(_points(name, [(places[n.candidate_id], _hover(n), n.candidate_id) for n in chosen], marker))
    operator = html.escape(searched.search.operator.name)
    traces.append(
        _points("operator", [(places[ROOT], operator, "")], {"symbol": "square", "color": "@ink", "size": 11})
    )
    if winner := searched.nodes.get(searched.winner_id or searched.best_id):
        marker = {"symbol": "star", "size": 19, "color": "@accent", "line": {"color": "@surface", "width": 1}}
        name = "winner" if searched.winner_id else "best so far"
        place = places[winner.candidate_id]
        traces.append(_points(name, [(place, _hover(winner), winner.candidate_id)], marker))
    layout = {
        "xaxis": {"visible": False, "range": [-0.7, leaves - 0.3]},
        "yaxis": {"visible": False, "range": [deepest + 0.6, -0.6]},
        "height": max(300, min(900, 120 + LEVEL_PX * (deepest + 1))),
        "meta": {"min_width": round(room * leaves) + 80},
        "hovermode": "closest",
    }
    return {"data": [t for t in traces if t["x"]], "layout": layout}


def progress(searched: Tree) -> Figure:
    """Speedup of every passed candidate and the best so far, over evaluations."""
    verdicts = [(float(n), searched.nodes[name]) for n, name in enumerate(searched.verdicts, start=1)]
    return _curve(searched, verdicts, "evaluations")


def progress_over_time(searched: Tree, times_s: Mapping[str, float]) -> Figure:
    """The same over seconds since the search was submitted; empty without times."""
    known = [(times_s[name], searched.nodes[name]) for name in searched.verdicts if name in times_s]
    return _curve(searched, sorted(known, key=lambda point: point[0]), "seconds")


def _curve(searched: Tree, verdicts: Sequence[tuple[float, Node]], unit: str) -> Figure:
    passed = [(x, node) for x, node in verdicts if node.passed]
    if not passed:
        return {}
    end = max(x for x, _ in verdicts)
    xs, ys, best = list[float](), list[float](), 0
    for x, node in passed:
        if node.score_ppm > best:
            best = node.score_ppm
            xs.append(x)
            ys.append(best / PPM)
    xs.append(end)
    ys.append(best / PPM)
    baseline, divided = "baseline", _divided(searched)
    if searched.reference:
        baseline = estimates.FIRST_DRAFT
    points = _points(
        "candidate",
        [((x, node.score_ppm / PPM), _hover(node), node.candidate_id) for x, node in passed],
        {"color": "@muted", "size": 6},
    )
    line = {"color": "@accent", "width": 2.5, "shape": "hv"}
    return {
        "data": [
            points,
            {"type": "scatter", "mode": "lines", "name": "best so far", "x": xs, "y": ys, "line": line},
            {
                "type": "scatter",
                "mode": "lines",
                "name": baseline,
                "x": [0, end],
                "y": [1, 1],
                "hoverinfo": "skip",
                "line": {"color": "@ink", "width": 1, "dash": "dash"},
            },
        ],
        "layout": {
            "xaxis": {"title": {"text": unit}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": divided}, "rangemode": "tozero", "ticksuffix": "×"},
            "height": 340,
            "hovermode": "closest",
        },
    }


def _divided(searched: Tree) -> str:
    """What the numbers are: a measured speedup over a baseline, or a cost that the first draft's is divided by."""
    if searched.reference:
        return f"{estimates.FIRST_DRAFT}'s cost over the candidate's ({searched.reference.basis.value})"
    baseline = "the faster baseline" if searched.search.baseline == "best" else searched.search.baseline
    return f"speedup over {baseline}"


def _scale(passed: Sequence[Node], mark: int, title: str) -> dict[str, Any]:
    scores = [node.score_ppm / PPM for node in passed]
    return {
        "color": scores,
        "colorscale": "Viridis",
        "size": mark,
        "line": {"color": "@muted", "width": 1},
        "colorbar": {"title": {"text": title, "side": "right"}, "thickness": 12, "len": 0.8, "ticksuffix": "×"},
    }


def _edges(searched: Tree, places: Mapping[str, Position], *, first: bool) -> dict[str, Any]:
    """Lines from parents to children: to the first parent (the root for drafts), or to the second of crossovers."""
    xs, ys = list[float | None](), list[float | None]()
    for node in searched.nodes.values():
        parents = [p if p in places else ROOT for p in node.parent_ids] or [ROOT]
        for parent in parents[:1] if first else parents[1:]:
            for x, y in (places[parent], places[node.candidate_id]):
                xs.append(x)
                ys.append(y)
            xs.append(None)
            ys.append(None)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "parent" if first else "second parent",
        "showlegend": not first,
        "x": xs,
        "y": ys,
        "hoverinfo": "skip",
        "line": {"color": "@edge", "width": 1.2, "dash": "solid" if first else "dot"},
    }


def _points(
    name: str, points: Sequence[tuple[tuple[float, float], str, str]], marker: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [place[0] for place, _, _ in points],
        "y": [place[1] for place, _, _ in points],
        "text": [text for _, text, _ in points],
        "customdata": [candidate for _, _, candidate in points],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": dict(marker),
    }


def _hover(node: Node) -> str:
    """A few lines of the little markup that Plotly reads; every text is escaped."""
    lines = [f"<b>{html.escape(node.move.name)}</b>", f"{node.candidate_id} {node.label}"]
    if node.passed and node.evaluation:
        lines += [html.escape(speedup_text(s)) for s in node.evaluation.speedups]
        if node.evaluation.estimate:
            lines.append(html.escape(estimates.cost(node.evaluation.estimate)))
        lines.append(f"bound by {node.evaluation.diagnosis.bound.value}")
    elif node.evaluation:
        lines.append(html.escape(reason(node.evaluation)[:HOVER_CHARS_MAX]))
    if node.pruned:
        lines.append(f"pruned: {html.escape(node.pruned)}")
    return "<br>".join(line for line in lines if line)
