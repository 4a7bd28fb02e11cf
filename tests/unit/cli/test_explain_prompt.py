"""``explain --prompt`` shows the exchange behind a candidate, and behind an answer that never became one."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from click.testing import CliRunner
from rich.console import Console

from cli import announce
from cli.commands.explain import command, facts
from cli.outcome import Finished, final_object
from shared import ids, kelog
from shared.errors import UserError
from shared.events import Usage
from shared.usage import taken_by, total
from tests.builders import a_pass
from tests.unit.cli import asked as asked_of
from tests.unit.cli.asked import Asked
from tests.unit.cli.recorded import record


@pytest.fixture
def asked() -> Asked:
    return Asked()


def explain(asked: Asked, tmp_path, *arguments: str) -> str:
    log = tmp_path / "search.kelog"
    conversations = {name: data for name, data in asked.blobs.items() if ids.content_hash(data) == name}
    kelog.write(log, asked.drive.entries, conversations, stream="search-1")
    done = CliRunner().invoke(command, [str(log), *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_a_candidates_turns_are_shown_with_what_they_were_read_as_and_cost(asked, tmp_path):
    name = asked.wrote(0, "mended", a_pass(), turns=[("prose", "no_block", "code, please")])
    told = explain(asked, tmp_path, name[:8], "--prompt")
    parts = ["== system", "You write kernels.", "== user", "Q", "== assistant (endpoint: large, model: m-1) prose",
             "== outcome (read as: no_block)", "code, please", "mended", "== outcome (read as: kernel)",
             "2 requests, 900 tokens read (300 cached), 100 written, cost 0.001234, 1.0 s"]  # fmt: skip
    places = [told.index(part) for part in parts]
    assert places == sorted(places)


def test_a_rejected_answer_is_listed_and_shown(asked, tmp_path):
    name = asked.refused(0, "I cannot help with that.", "refused")
    overview = explain(asked, tmp_path)
    assert "1 answers rejected before evaluation" in overview
    assert f"{name[:8]} refused" in overview
    told = explain(asked, tmp_path, name, "--prompt")
    assert "I cannot help with that." in told
    assert "rejected: refused" in told


def test_a_rejected_answer_without_its_prompt_says_why_and_how_to_see_it(asked, tmp_path):
    name = asked.refused(0, "I cannot help with that.", "refused")
    with pytest.raises(UserError, match="rejected before it was evaluated: refused.*--prompt"):
        explain(asked, tmp_path, name[:8])


def test_what_no_model_was_asked_for_has_no_prompt(tmp_path):
    past = record()
    log = tmp_path / "search.kelog"
    kelog.write(log, past.entries, {}, stream="search-1")
    name = next(iter(past.tree.nodes))
    with pytest.raises(UserError, match="no model was asked for it"):
        CliRunner().invoke(command, [str(log), name, "--prompt"], catch_exceptions=False)


def test_an_unknown_price_is_unknown_in_every_total(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(asked_of, "USAGE", replace(asked_of.USAGE, cost_micro=-1))
    asked.wrote(0, "good", a_pass())
    told = explain(asked, tmp_path)
    assert "1,000 tokens, cost unknown" in told
    assert "cost unknown, 1.0 s" in told
    result = final_object(asked.tree, run_dir=None, artefact=None, total_ns=1)
    assert result["model"]["cost"] is None
    lines = announce.lines(Finished(tree=asked.tree, result=result, artefact=None))
    assert any("cost unknown" in line for line in lines if line.startswith("models"))


def test_what_an_endpoint_took_before_it_failed_is_told_apart(asked, monkeypatch):
    failed = taken_by(Usage(input_tokens=40, output_tokens=2, cost_micro=-1, requests=3), "small")
    answered = taken_by(asked_of.USAGE, "large")
    monkeypatch.setattr(asked_of, "USAGE", total(failed, answered))
    name = asked.wrote(0, "good", a_pass())
    console = Console(file=io.StringIO(), width=300)
    console.print(facts(asked.tree, asked.tree.nodes[name]))
    told = console.file.getvalue()
    assert "small 42 tokens in 3 requests, cost unknown" in told
    assert f"large 1,000 tokens in {answered.requests} requests, cost 0.001234" in told
    result = final_object(asked.tree, run_dir=None, artefact=None, total_ns=1)
    assert result["model"]["by_endpoint"]["small"] == {"requests": 3, "tokens": 42, "cost": None}
