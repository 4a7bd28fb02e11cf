"""Numbers of chips without a clock: wherever they are shown they say what they rest on, and claim no time."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cli import announce, estimates, outcome, searches, trajectories
from cli.commands import explain
from cli.live import describe
from cli.progress import Progress, fold
from cli.report import render
from search_svc import index, messages, projection, replay
from shared.events import PPM, Basis, Count, Estimate, Status
from tests.builders import a_failure, a_search, an_estimate
from tests.fakes.drive import Drive
from tests.fakes.landscape import Clockless
from tests.unit.cli.asked import Asked

BOTH = (Basis.COUNTED, Basis.MODELLED)
CLAIMS = ("faster", "speedup", "re-measured", "search measurement", "99.4 %", " µs")


@pytest.fixture(scope="module", params=BOTH, ids=str)
def searched(request):
    drive = Drive(landscape=Clockless(basis=request.param))
    drive.run(a_search(evaluations=12, chip="no-clock"))
    return drive


def finished(drive):
    made = outcome.final_object(drive.tree, run_dir=Path("runs/x"), artefact=None, total_ns=1)
    return outcome.Finished(tree=drive.tree, result=made, artefact=None)


def basis_of(drive):
    return drive.tree.reference.basis


def claims_nothing(text):
    return not [word for word in CLAIMS if word in text]


def test_the_outcome_is_announced_with_its_basis_and_unit(searched):
    done = finished(searched)
    basis, text = basis_of(searched), "\n".join(announce.lines(done))
    cost = searched.tree.nodes[searched.tree.winner_id].final.estimate.cost
    assert f"{cost:,} ns a call ({basis})" in text
    assert f"less than the first draft ({basis})" in text
    assert estimates.MEANING[basis] in text
    assert claims_nothing(text)
    assert announce.EXIT_CODES[done.result["outcome"]] == 0


def test_the_final_object_has_the_estimate_in_the_place_of_speedups(searched):
    best = finished(searched).result["best"]
    reference, found = searched.tree.reference, best["estimate"]
    assert set(best["speedup"].values()) == {None}
    assert (found["basis"], found["unit"], found["first_draft"]) == (basis_of(searched), "ns", reference.cost)
    assert found["times_less"] == reference.cost / found["cost"]
    assert found["counts"] == {"instructions": found["cost"]}
    json.dumps(best)


def test_the_story_labels_every_score(searched):
    console = Console(file=StringIO(), width=200)
    best = searched.tree.nodes[searched.tree.winner_id]
    console.print(explain.overview(searched.tree))
    console.print(explain.measurements("evaluation", best.evaluation))
    text = console.file.getvalue()
    scored = [line for line in text.splitlines() if "x " in line and "PASSED" in line]
    assert scored
    assert all(f"x {basis_of(searched)}" in line for line in scored)
    assert f"ns a call ({basis_of(searched)})" in text
    assert claims_nothing(text)


def test_the_report_labels_every_score_and_has_no_times(searched):
    page = render(searched.tree, {}, finished(searched).result)
    text = page[: page.index("<script")].partition("</style>")[2]
    basis, tree = basis_of(searched), searched.tree
    score = projection.final_ppm(tree, tree.nodes[tree.winner_id]) / PPM
    assert f"{score:.3f}× {basis}" in text
    assert f"cost over the candidate's ({basis})" in page
    assert claims_nothing(text)


def test_a_server_tells_of_a_cost_and_its_basis(searched):
    shown = messages.search(index.row(searched.tree, 1))
    basis, text = basis_of(searched), "\n".join(searches.lines(shown))
    assert f"less than the first draft ({basis})" in text
    assert claims_nothing(text)
    plain = searches.plain(shown)
    assert plain["best"]["speedup"] is plain["winner"]["speedup"] is plain["winner"]["ci_low"] is None
    assert plain["winner"]["times_less"] == shown.winner_speedup_ppm / PPM
    assert plain["estimate"]["first_draft"] == searched.tree.reference.cost
    console = Console(file=StringIO(), width=200)
    console.print(searches.table([shown]))
    assert f"x {basis}" in console.file.getvalue()


def test_the_live_view_tells_each_verdict_as_a_cost(searched):
    state, told = Progress(), []
    for fact in replay.inputs(searched.entries):
        before, state = state, fold(state, fact.event)
        told.append(describe(fact.event, before, state))
    text = "\n".join(told)
    basis = basis_of(searched)
    assert f"as the first draft ({basis})" in text
    assert f"less than the first draft ({basis})" in text
    assert "[checked again]" in text
    assert "<- best" in text
    assert state.cheapest.cost == searched.tree.best.evaluation.estimate.cost
    assert claims_nothing(text)


def test_a_first_draft_that_nothing_beats_is_announced_as_such():
    drive = Drive(landscape=Clockless())
    drive.run(a_search(evaluations=1))
    text = "\n".join(announce.lines(finished(drive)))
    assert "outcome   estimated" in text
    assert "as the first draft (counted): nothing else was counted to cost less" in text


def test_costs_read_as_amounts_of_their_unit():
    estimate = Estimate(
        basis=Basis.COUNTED, cost=4711, unit="model cycles", counts=(Count(name="branches", value=1200),)
    )
    assert estimates.cost(estimate) == "4,711 model cycles a call (counted)"
    assert estimates.against(1_840_000, "counted") == "1.84x less than the first draft (counted)"
    assert estimates.against(500_000, "modelled") == "2.00x more than the first draft (modelled)"
    assert estimates.counts(estimate.counts) == "branches 1,200"
    assert estimates.plain(estimate)["times_less"] is None


@pytest.mark.parametrize(("basis", "pairs"), [(Basis.COUNTED, 1), (Basis.MODELLED, 0)])
def test_an_exact_count_makes_an_answer_better_and_a_model_does_not(basis, pairs):
    asked = Asked()
    asked.wrote(0, "first", an_estimate(3_000, basis))
    asked.wrote(1, "second", an_estimate(1_000, basis))
    rows = list(trajectories.preferences(asked.tree, asked.drive.entries, asked.blobs))
    assert len(rows) == pairs
    if pairs:
        assert rows[0]["evidence"]["because"] == "it was counted to cost 1,000 ns, the other 3,000"
        assert rows[0]["evidence"]["chosen"]["estimate"]["basis"] == "counted"


def test_a_failure_is_worse_than_what_a_model_ranks():
    asked = Asked()
    asked.wrote(0, "right", an_estimate(3_000))
    asked.wrote(1, "wrong", a_failure(Status.WRONG_RESULT))
    rows = list(trajectories.preferences(asked.tree, asked.drive.entries, asked.blobs))
    assert [row["evidence"]["because"] for row in rows] == ["the other failed: WRONG_RESULT"]
