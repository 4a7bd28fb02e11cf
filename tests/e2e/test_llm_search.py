"""Whole searches with a real model behind a real server, through the command line; what they leave needs neither.

Few calls and short answers: the model has one thread. Who wants to see more of one: ``python -m tests.model_server``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import OPERATOR, ROOT, kernelevolve, last_object

from cli import history
from search_svc.projection import winner
from shared import wire
from shared.events import CandidateProduced, CandidateRejected
from tests import model_server

pytestmark = [pytest.mark.serial, pytest.mark.timeout(900)]
INSTANCE_NORM = ROOT / "examples" / "operators" / "instance_norm.py"
"""Schedules gain most on it: an improvement shows on a busy machine, too."""
DEADLINE_S = 600.0
"""For a search; half a minute on a quiet machine."""
SMALL = {
    "MODEL_QUOTED_KERNELS_MAX": "0",
    "MODEL_MOVES_OFFERED_MAX": "12",
    "MODEL_MOVES_OUTPUT_TOKENS_MAX": "300",
    "MODEL_OUTPUT_TOKENS_MAX": "300",
    "MODEL_DEADLINE_S": "500",
    "SYNTHESIZER_DOCUMENTS_MAX": "0",
}
UNTIL_DECIDED = {"TIMING_ROUNDS_MAX": "60", "TIMING_FINAL_ROUNDS_MAX": "60"}
"""Measuring stops once an interval says faster: on a quiet machine these are not used."""
ENDPOINTS = """
[endpoints.packaged]
url = "{url}"
model = "{model}"
server = "llama.cpp"
concurrency = 1
silence_s = 500
prices = {{ input = 0, output = 0 }}
capabilities = {{ context_tokens = {context} }}
"""


@dataclass(frozen=True)
class Done:
    """A finished search."""

    run: Path
    code: int
    result: dict[str, Any]
    past: history.Past

    def events(self, kind):
        found = (wire.unpack(entry.event).event for entry in self.past.entries)
        return [event for event in found if isinstance(event, kind)]


def search(operator, run, home, name, *, evaluations, **settings):
    """Search with a server that is gone afterwards; ``name`` makes of its URL the settings that name it."""
    arguments = ("optimize", operator, "--evaluations", evaluations, "--seed", 7, "--out", run, "--json")
    with model_server.fresh() as server:
        asked = SMALL | name(f"{model_server.ready(server)}/v1") | settings
        done = kernelevolve(*arguments, home=home, settings=asked, deadline_s=DEADLINE_S)
    assert done.returncode in (0, 1), done.stderr
    return Done(run, done.returncode, last_object(done), asyncio.run(history.open_past(run)))


@pytest.fixture(scope="module")
def moves(tmp_path_factory):
    """A search in which the model chooses every schedule move."""
    home = tmp_path_factory.mktemp("home")
    settings = {"MODEL_ASKING": "moves", "MODEL_SHARE_PERCENT": "100"} | UNTIL_DECIDED

    def by_url(url):
        return {"MODEL_URL": url, "MODEL_NAME": model_server.MODEL}

    run = tmp_path_factory.mktemp("runs") / "moves"
    return search(INSTANCE_NORM, run, home, by_url, evaluations=3, **settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search in which the model is asked for every other kernel."""
    home = tmp_path_factory.mktemp("home")
    settings = {"MODEL_ASKING": "whole", "MODEL_OUTPUT_TOKENS_MAX": "60", "MODEL_REPAIR_TURNS": "1"}

    def by_file(url):
        path = home / "endpoints.toml"
        path.write_text(ENDPOINTS.format(url=url, model=model_server.MODEL, context=model_server.CONTEXT_TOKENS))
        return {"MODEL_ENDPOINTS": str(path)}

    run = tmp_path_factory.mktemp("runs") / "whole"
    return search(OPERATOR, run, home, by_file, evaluations=2, **settings)


def test_a_model_that_chooses_moves_ends_improved_with_kernels_that_name_it(moves):
    produced = moves.events(CandidateProduced)

    assert (moves.code, moves.result["outcome"]) == (0, "improved")
    assert {one.context.asking for one in produced} == {"moves"}
    assert {one.context.model for one in produced} == {model_server.MODEL}
    assert winner(moves.past.tree).context.model == model_server.MODEL
    assert all(one.usage.requests and one.usage.output_tokens for one in produced)


def test_the_prompts_of_a_search_share_a_beginning_that_the_server_reads_once(moves):
    usages = [one.usage for one in moves.events((CandidateProduced, CandidateRejected))]
    cached, read = sum(usage.cached_tokens for usage in usages), sum(usage.input_tokens for usage in usages)

    assert len(usages) > 1
    assert cached / read > 0.25


def test_a_model_that_cannot_write_kernels_is_survived_and_each_bad_answer_is_typed(whole):
    rejected = [one for one in whole.events(CandidateRejected) if one.context.asking == "whole"]

    assert rejected
    assert all(one.code not in ("", "endpoint", "deadline") for one in rejected), [one.code for one in rejected]
    assert {(one.context.endpoint, one.context.model) for one in rejected} == {("packaged", model_server.MODEL)}
    assert {one.usage.cost_micro for one in rejected} == {0}
    assert all(one.context.conversation_hash in whole.past.blobs for one in rejected)
    assert any(one.usage.requests > 1 for one in rejected)  # told what was wrong, and asked again
    assert whole.result["evaluations"] == 2
    assert whole.result["outcome"] in ("improved", "no_improvement")


@pytest.mark.parametrize("name", ["moves", "whole"])
def test_what_a_model_wrote_replays_without_it(name, request, tmp_path):
    done = request.getfixturevalue(name)
    replayed = kernelevolve("replay", done.run, home=tmp_path, settings={"MODEL_URL": ""})

    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout.startswith("identical")
