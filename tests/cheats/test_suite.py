"""The suite of cheats and look-alikes in the tests: what ``make cheats`` shows as a table, one test for each entry."""

from __future__ import annotations

import pytest

from evaluator_svc.target import Kind
from tests.cheats.catalogue import CPU, ENTRIES, entries
from tests.cheats.manifest import HERE, Candidate, Cheat
from tests.cheats.mechanisms import ELSEWHERE, MECHANISMS
from tests.cheats.naive import BELIEVED, opinions
from tests.cheats.outcome import tried
from tests.cheats.workplace import workplace

ALL = [entry for chip in ENTRIES for entry in ENTRIES[chip]]


def believed_cheats():
    return [entry for entry in entries(CPU, Kind.CPU) if isinstance(entry, Cheat) and entry.naive is not None]


@pytest.fixture(scope="module")
def outcomes(request):
    """Of the entries whose tests were chosen, found out two at a time."""
    name = test_a_cheat_is_caught_by_its_layer_and_a_look_alike_passes.__name__
    chosen = [item.callspec.params["entry"] for item in request.session.items if item.originalname == name]
    with workplace(CPU) as place:
        return {outcome.entry.id: outcome for outcome in tried(place, chosen)}


@pytest.fixture(scope="module")
def said(request):
    """By the naive harness, on the cheats whose tests were chosen."""
    name = test_a_naive_harness_believes_the_cheat_so_it_is_one.__name__
    return opinions(item.callspec.params["cheat"] for item in request.session.items if item.originalname == name)


@pytest.mark.serial
@pytest.mark.timeout(900)
@pytest.mark.parametrize("entry", entries(CPU, Kind.CPU), ids=lambda entry: entry.id)
def test_a_cheat_is_caught_by_its_layer_and_a_look_alike_passes(outcomes, entry):
    outcome = outcomes[entry.id]
    # Where others use the cores, what only times can tell stays undecided; `make cheats` does not let that pass.
    assert outcome.undecided or not outcome.problem, f"{outcome.status} by {outcome.layer}: {outcome.evidence}"


@pytest.mark.slow  # minutes of compiling; `make cheats` says the same
@pytest.mark.timeout(900)
@pytest.mark.parametrize("cheat", believed_cheats(), ids=lambda cheat: cheat.id)
def test_a_naive_harness_believes_the_cheat_so_it_is_one(said, cheat):
    assert said[cheat.id].startswith(BELIEVED)


def test_every_mechanism_has_a_candidate_or_says_where_else_it_is_tested():
    tried_here = {entry.mechanism for entry in ALL if hasattr(entry, "mechanism")}
    assert set(MECHANISMS) == tried_here | set(ELSEWHERE)


def test_every_file_of_a_candidate_is_in_the_manifest_and_says_what_it_hopes_for():
    listed = {entry.path for entry in ALL if isinstance(entry, Candidate)}
    assert listed == {path for kind in ("candidates", "look_alikes") for path in (HERE / kind).glob("*/*.*")}
    for entry in ALL:
        if isinstance(entry, Cheat):
            text = entry.path.read_text()
            assert entry.mechanism in text.splitlines()[0]
            assert "Source: " in text
            assert "Hopes: " in text
