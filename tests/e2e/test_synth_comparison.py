"""The comparison of synthesizers in its short form: live with the packaged model, then again from what was recorded."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from command_line import ROOT, environment

pytestmark = [pytest.mark.serial, pytest.mark.timeout(1800)]
DEADLINE_S = 800.0
"""For four searches; a minute on a quiet machine."""
SHORT = ("--operators", "row_softmax", "--seeds", 1, "--ways", "schedules,moves", "--evaluations", 2, "--seconds", 0)


def compare(*arguments, home):
    command = [sys.executable, "-m", "tests.bench.synth", "--no-write", *map(str, arguments)]
    small = {"MODEL_MOVES_OFFERED_MAX": "12", "SYNTHESIZER_DOCUMENTS_MAX": "0"}
    env = environment(home) | small
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(page):
    """Ways and the cells beside them."""
    return {
        row[0]: row[1:] for row in re.findall(r"^\| (schedules|moves) \| (\d+) \| (\d) \| (.*)$", page, re.MULTILINE)
    }


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    recording = folder / "answers.jsonl"
    live = compare(*SHORT, "--record", recording, home=folder)
    return live, compare("--recorded", recording, home=folder), recording


def test_the_page_says_which_model_ran_and_what_each_way_found(compared):
    live, _, _ = compared

    assert "Model: `smollm2-135m-instruct`; live: SmolLM2-135M-Instruct" in live
    assert "not what a capable model adds" in live
    assert set(rows(live)) == {"schedules", "moves"}
    assert "At equal evaluations: 2 per search" in live
    assert "one search: no interval" in live


def test_a_recording_runs_again_without_the_endpoint_and_says_so(compared):
    live, again, recording = compared
    header, *answers = map(json.loads, recording.read_text().splitlines())

    assert set(rows(again)) == set(rows(live))
    assert "`smollm2-135m-instruct`; recorded from SmolLM2-135M-Instruct" in again
    played = int(re.search(r"\d+ of (\d+) questions equal", again)[1])
    assert played >= 2
    assert header["plan"]["evaluations"] == 2
    assert {one["cell"] for one in answers} == {"evaluations.row_softmax.1.moves"}
