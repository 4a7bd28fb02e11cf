"""The HTML report: complete, well-formed, self-contained, and safe with hostile text."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import plotly.graph_objects as go
import pytest

from cli import outcome
from cli.report import layout, render, verdict_times
from cli.report.layout import ROOT
from search_svc.apply import start
from shared.events import PPM
from tests.builders import a_search
from tests.unit.cli.recorded import FLOORS, HOSTILE, UNKNOWN, record

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Checks that elements close in order; keeps ids, text, data blocks and everything that would be fetched."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.ids, self.headings, self.texts = list[str](), list[str](), list[str](), list[str]()
        self.fetched, self.links, self.data = list[str](), list[str](), dict[str, str]()
        self._data = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.fetched += [
            v for k, v in attrs if k in ("src", "srcset", "poster", "data") or (k == "href" and tag != "a")
        ]
        self._data = given.get("id", "") if given.get("type") == "application/json" else ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            if self._data:
                self.data[self._data] = self.data.get(self._data, "") + data
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


@pytest.fixture(scope="module")
def recorded():
    return record()


@pytest.fixture(scope="module")
def result(recorded):
    return outcome.final_object(recorded.tree, run_dir=Path("runs/toy"), artefact=Path("runs/toy/kernel"), total_ns=1)


@pytest.fixture(scope="module")
def html(recorded, result):
    return render(recorded.tree, recorded.blobs, result, verdict_times(recorded.entries))


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_the_page_fetches_nothing_and_forbids_fetching(html, page):
    assert page.fetched == []
    assert all(link.startswith("#") for link in page.links)
    assert "default-src 'none'" in html
    assert not re.search(r"@import|url\(\s*['\"]?https?:", html[: html.index("plotly.js")])


def test_ids_are_unique_links_lead_somewhere_and_headings_do_not_skip_a_level(page):
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)
    levels = [int(h[1]) for h in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_published_numbers_with_their_intervals_are_on_the_page(recorded, page):
    final = recorded.tree.nodes[recorded.tree.winner_id].final
    for speedup in final.speedups:
        assert f"{speedup.ratio_ppm / PPM:.3f}×" in page.text
        assert f"{speedup.low_ppm / PPM:.3f}× to {speedup.high_ppm / PPM:.3f}×" in page.text
    assert "improved" in page.text
    assert "a processor" in page.text
    assert "kernelevolve replay runs/toy" in page.text


def test_every_candidate_is_in_the_table_that_stands_in_for_the_picture(recorded, page):
    assert {f"n-{name}" for name in recorded.tree.nodes} <= set(page.ids)
    assert "COMPILE_ERROR" in page.text
    assert "made up" in page.text


def test_hostile_text_stays_text(html, page):
    assert HOSTILE in page.text
    assert HOSTILE not in html
    assert "<i>pay</i>" not in html


def test_the_pictures_are_figures_that_plotly_accepts(page):
    assert set(page.data) == {"data-tree", "data-progress", "data-time", "data-roofline"}
    for text in page.data.values():
        chart = json.loads(re.sub(r'"@[a-z]+"', '"#123456"', text))
        go.Figure(chart)


def test_the_progress_curve_ends_at_the_best_and_never_falls(recorded, page):
    best = next(t for t in json.loads(page.data["data-progress"])["data"] if t["name"] == "best so far")
    assert best["y"] == sorted(best["y"])
    assert best["y"][-1] == recorded.tree.best.score_ppm / PPM
    assert best["x"][-1] == len(recorded.tree.verdicts)


def rates(page):
    return {trace["name"]: trace for trace in json.loads(page.data["data-roofline"])["data"]}


def test_the_roofline_has_the_roofs_the_floors_were_computed_with(recorded, page):
    drawn = rates(page)
    assert set(drawn) == {"roof of L3 20.0 GB/s", "peak 125.0 GFLOP/s", "candidates"}
    assert drawn["roof of L3 20.0 GB/s"]["y"][1] == pytest.approx(125)
    assert len(drawn["candidates"]["x"]) == sum(node.passed for node in recorded.tree.nodes.values())


def test_without_an_operation_count_rates_of_traffic_are_drawn(result):
    bare = record(flops=0, floors=(FLOORS[0], UNKNOWN[1]))
    page = Page(render(bare.tree, bare.blobs, result))
    assert set(rates(page)) == {"roof of L3 20.0 GB/s", "candidates"}
    assert "operations not counted" in page.text


def test_roofs_that_were_not_measured_are_not_drawn(result):
    bare = record(floors=UNKNOWN)
    page = Page(render(bare.tree, bare.blobs, result))
    assert set(rates(page)) == {"candidates"}
    assert "no roof is drawn" in page.text
    assert "data-time" not in page.data


def test_the_winner_is_shown_with_its_source_and_what_changed(recorded, page):
    winner = recorded.tree.nodes[recorded.tree.winner_id]
    assert f"// point {winner.kernel.source_hash}" in page.text
    assert f"Difference to its parent {winner.parent_ids[0]}" in page.text
    draft = list(recorded.tree.lineage(winner.candidate_id))[-1]
    assert f"Difference to the first draft {draft.candidate_id}" in page.text


def test_a_search_that_has_only_begun_has_a_page_too():
    tree = start(a_search())
    page = Page(render(tree, {}, {"run_dir": "runs/x", "best": None, "seconds": {}, "environment": {}}))
    assert "has not finished" in page.text
    assert "No candidate passed" in page.text
    assert page.data == {}


def test_a_search_in_which_nothing_passed_says_so(result):
    whole = record(a_search(evaluations=4))
    failed = {name: node for name, node in whole.tree.nodes.items() if node.failed}
    page = Page(render(_only(whole.tree, failed), whole.blobs, result | {"best": None}))
    assert "No kernel of toy on cpu-x86_64 was shown to beat the baseline" in page.text


def _only(tree, nodes):
    kept = {"nodes": nodes, "verdicts": tuple(nodes), "winner_id": "", "best_id": "", "outcome": "no_improvement"}
    return replace(tree, **kept)


def test_parents_stand_above_the_middle_of_their_children_and_leaves_do_not_meet(recorded):
    places = layout.positions(recorded.tree)
    assert places[ROOT][1] == 0
    assert len(set(places.values())) == len(places)
    for node in recorded.tree.nodes.values():
        above = places[node.parent_ids[0] if node.parent_ids else ROOT]
        assert places[node.candidate_id][1] == above[1] + 1
