"""Putting the report together: what goes on the page, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from cli import estimates
from cli.report import figures, roof, sources, tables
from search_svc import projection
from search_svc.tree import Node, Tree
from shared import wire
from shared.events import EvaluationCompleted, Purpose
from shared.store import JournalEntry

NS_PER_S = 1_000_000_000


def render(
    tree: Tree, blobs: Mapping[str, bytes], result: Mapping[str, Any], times_s: Mapping[str, float] | None = None
) -> str:
    """The page for ``tree``.

    ``blobs`` holds the sources by content hash, ``result`` is ``outcome.final_object``'s, ``times_s`` the time of each
    candidate's verdict (``verdict_times``); without it the progress curve over time is left out.
    """
    summary = projection.summarize(tree)
    best = projection.winner(tree) or tree.best
    charts = {
        "tree": figures.tree(tree),
        "progress": figures.progress(tree),
        "time": figures.progress_over_time(tree, times_s or {}),
        "roofline": roof.figure(tree),
    }
    page = _environment().get_template("report.html.j2")
    return page.render(
        tree=tree,
        summary=summary,
        result=result,
        announced=projection.winner(tree) is not None,
        best=best,
        headline=tables.headline(tree, best),
        speedups=tables.speedups(tree, best),
        timings=tables.timings(best),
        statuses=tables.statuses(tree),
        basis=tree.reference.basis.value if tree.reference else "",
        meaning=estimates.MEANING[tree.reference.basis] if tree.reference else "",
        top=tables.top(tree),
        candidates=tables.candidates(tree),
        lineage=tables.lineage(tree, best),
        facts=tables.facts(tree, result),
        endpoints=tables.endpoints(tree),
        environment=tables.environment(best, result),
        commands=tables.commands(result),
        seconds=result.get("seconds", {}),
        roof_note=roof.note(tree),
        code=_code(tree, best, blobs),
        code_styles=Markup(sources.styles()),  # noqa: S704 - from pygments
        charts={name: _json(chart) for name, chart in charts.items() if chart},
        plotly_js=Markup(get_plotlyjs()),  # noqa: S704 - the library itself
    )


def verdict_times(entries: Iterable[JournalEntry]) -> dict[str, float]:
    """Seconds from the search's submission to each candidate's last search verdict, by candidate id."""
    times: dict[str, float] = {}
    begin_ns = 0
    for entry in entries:
        event = wire.unpack(entry.event).event
        if isinstance(event, EvaluationCompleted) and event.purpose is Purpose.SEARCH:
            times[event.candidate_id] = (event.at_ns - begin_ns) / NS_PER_S
        elif entry.seq == 0:
            begin_ns = getattr(event, "at_ns", 0)
    return times


def _code(tree: Tree, best: Node | None, blobs: Mapping[str, bytes]) -> dict[str, Markup | str]:
    """Highlighted source of ``best`` and its differences to its parent and to the draft it descends from."""
    if best is None or best.kernel.source_hash not in blobs:
        return {}
    text = blobs[best.kernel.source_hash].decode(errors="replace")
    shown: dict[str, Markup | str] = {"source": sources.highlighted(text, best.kernel.language)}
    ancestors = list(tree.lineage(best.candidate_id))[1:]
    for name, other in (("parent", ancestors[:1]), ("draft", ancestors[-1:] if len(ancestors) > 1 else [])):
        for node in other:
            before = blobs[node.kernel.source_hash].decode(errors="replace")
            shown[name] = sources.difference(before, text, node.candidate_id, best.candidate_id)
            shown[f"{name}_id"] = node.candidate_id
    return shown


def _json(chart: Mapping[str, Any]) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(chart, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704 - escaped


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("cli.report"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
