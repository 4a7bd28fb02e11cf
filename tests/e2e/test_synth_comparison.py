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
"""For one search; less than a minute on a quiet machine."""
SHORT = ("--operators", "row_softmax", "--seeds", 1, "--ways", "moves", "--evaluations", 1, "--seconds", 0)


def compare(*arguments, home):
    command = [sys.executable, "-m", "tests.bench.synth", "--no-write", *map(str, arguments)]
    small = {"MODEL_MOVES_OFFERED_MAX": "12", "SYNTHESIZER_DOCUMENTS_MAX": "0"}
    env = environment(home) | small
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ways(page):
    return re.findall(r"^\| (\w+) \| \d+ \| \d+ \|", page, re.MULTILINE)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return tmp_path_factory.mktemp("comparison") / "answers.jsonl"


@pytest.fixture(scope="module")
def live(recording):
    return compare(*SHORT, "--record", recording, home=recording.parent)


def test_the_page_says_which_model_ran_and_what_it_found(live, recording):
    header, *answers = map(json.loads, recording.read_text().splitlines())

    assert "Model: `smollm2-135m-instruct`; live: SmolLM2-135M-Instruct" in live
    assert "not what a capable model adds" in live
    assert "At equal evaluations: 1 per search" in live
    assert "one search: no interval" in live
    assert ways(live) == ["moves"]
    assert header["plan"]["evaluations"] == 1
    assert {one["cell"] for one in answers} == {"evaluations.row_softmax.1.moves"}


@pytest.mark.slow
def test_a_recording_runs_again_without_the_endpoint_and_says_so(live, recording, tmp_path):
    again = compare("--recorded", recording, home=tmp_path)

    assert ways(again) == ways(live)
    assert "`smollm2-135m-instruct`; recorded from SmolLM2-135M-Instruct" in again
    assert int(re.search(r"\d+ of (\d+) questions equal", again)[1]) >= 1
