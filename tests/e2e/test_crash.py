"""kill -9 in mid-search, then resume: nothing lost, nothing measured twice."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest
from command_line import OPERATOR, ROOT, command, environment, kernelevolve, last_object

from shared import kelog, wire
from shared.events import EvaluationCompleted, Purpose

pytestmark = [pytest.mark.serial, pytest.mark.timeout(600)]

EVALUATIONS = 6
RESULTS_BEFORE_KILL = 2


def verdicts(log):
    """``(candidate, purpose, attempt)`` of every verdict in the journal, in order."""
    events = [wire.unpack(entry.event).event for entry in log.entries]
    return [
        (event.candidate_id, event.purpose, event.attempt) for event in events if isinstance(event, EvaluationCompleted)
    ]


@pytest.fixture(scope="module")
def killed(home, tmp_path_factory):
    """A run directory whose process was killed after a few verdicts."""
    run = tmp_path_factory.mktemp("crash") / "run"
    arguments = command("optimize", OPERATOR, "--evaluations", EVALUATIONS, "--seed", 3, "--out", run)
    process = subprocess.Popen(arguments, cwd=ROOT, env=environment(home), stderr=subprocess.PIPE, text=True)
    seen = 0
    for line in process.stderr:
        seen += f"/{EVALUATIONS}]" in line
        if seen >= RESULTS_BEFORE_KILL:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert not (run / "result.json").exists()
    return run


def test_a_killed_search_resumes_to_its_end_without_measuring_anything_twice(killed, home):
    done = kernelevolve("resume", killed, "--json", home=home)
    assert done.returncode == 0, done.stderr
    result = last_object(done)

    log = kelog.read(killed / "search.kelog")
    every = verdicts(log)
    assert len(every) == len(set(every))
    assert result["evaluations"] == EVALUATIONS
    searched = {candidate for candidate, purpose, _ in every if purpose is Purpose.SEARCH}
    assert len(searched) == EVALUATIONS
    assert json.loads((killed / "result.json").read_text()) == result

    again = kernelevolve("replay", killed, home=home)
    assert again.returncode == 0, again.stderr


def test_resuming_a_finished_search_says_how_it_ended(killed, home):
    first = json.loads((killed / "result.json").read_text())
    done = kernelevolve("resume", killed, "--json", home=home)

    assert done.returncode == 0, done.stderr
    second = last_object(done)
    assert {**second, "seconds": None} == {**first, "seconds": None}
