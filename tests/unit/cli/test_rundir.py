"""Making, opening and holding run directories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli import rundir
from shared import envelopes
from shared.clock import ManualClock
from shared.errors import LogError, UserError
from shared.events import Budget, OperatorRef, SearchStarted

STARTED = SearchStarted(
    search_id="s",
    operator=OperatorRef(name="toy", source_hash="h"),
    chip="cpu-x86_64",
    policy="greedy",
    seed=0,
    budget=Budget(evaluations=4),
)


def test_a_manifest_reads_back_as_written(tmp_path):
    run = rundir.create(tmp_path / "run", "toy")
    envelope = envelopes.envelope(STARTED, cause_id="s", source="/submitter", clock=ManualClock(5))
    rundir.write_manifest(run, envelope, Path("toy.py"), stream="s")

    manifest = rundir.read_manifest(rundir.open_existing(run.path))
    assert manifest.started == STARTED
    assert manifest.stream == "s"
    assert manifest.operator_path == Path("toy.py").resolve()


def test_a_directory_that_holds_something_is_refused_and_kept(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UserError, match="not empty"):
        rundir.create(tmp_path, "toy")

    assert (tmp_path / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', json.dumps({"format": 99})])
def test_a_broken_manifest_is_a_log_error_that_names_it(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(LogError, match="run.json"):
        rundir.read_manifest(rundir.open_existing(tmp_path))


def test_a_run_is_worked_on_by_one_process_at_a_time(tmp_path):
    run = rundir.create(tmp_path / "run", "toy")
    with rundir.exclusive(run), pytest.raises(UserError, match="another process"), rundir.exclusive(run):
        pass
