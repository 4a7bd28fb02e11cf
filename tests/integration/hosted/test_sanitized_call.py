"""A module in the sanitizers' box: a stand-in for the tool starts it as the tool does, on this machine."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_svc.cases import Case, Suite
from evaluator_svc.hosted.box import PYTHON
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.sanitizers.report import FOUND_STATUS
from evaluator_svc.sanitizers.stage import SanitizerStage
from evaluator_svc.settings import SanitizingSettings
from evaluator_svc.toolchains import Built
from shared.errors import Retryable
from shared.events import Purpose
from tests.integration.hosted.softmax_module import ONE_TENSOR, RIGHT, SPEC, forward, values

SAMPLES = Path(__file__).parents[2] / "unit" / "evaluator" / "sanitizers"
STAND_IN = """#!/bin/sh
while :; do
  case "$1" in
    --tool) tool=$2; shift 2 ;;
    --log-file) report=$2; shift 2 ;;
    --*) shift 2 ;;
    *) break ;;
  esac
done
{before}
"$@" || exit $?
case $tool in
  memcheck) cat {folder}/{memory}.txt > "$report"; exit {status} ;;
  racecheck) cat {folder}/racecheck_ok.txt > "$report" ;;
  *) cat {folder}/memcheck_ok.txt > "$report" ;;
esac
"""
"""Takes the tool's options, starts the program, and writes a recorded report."""

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not machine_sandbox().isolated, reason="sanitizers look where there are namespaces"),
]


class FreeDevice:
    """Always to be had."""

    @asynccontextmanager
    async def exclusive(self):
        yield 1


class TakenDevice:
    @asynccontextmanager
    async def exclusive(self):
        raise Retryable("the device was not free for 1 s")
        yield


@pytest.fixture
def stage(tmp_path):
    """``stage(memory, status)``: a tool that answers so."""
    folder = tmp_path / "tool"
    folder.mkdir()

    def made(memory="memcheck_ok", status=0, before="", time_s=60.0, device=None):
        for sample in SAMPLES.iterdir():
            (folder / sample.name).write_text(sample.read_text())
        tool = folder / "compute-sanitizer"
        tool.write_text(STAND_IN.format(before=before, folder=folder, memory=memory, status=status))
        tool.chmod(0o755)
        return SanitizerStage(
            device=device or FreeDevice(),
            settings=SanitizingSettings(sanitize_s=time_s),
            find=lambda: tool,
            profile=lambda: PYTHON,
        )

    return made


def looked(stage, tmp_path, text=RIGHT, host="hosted"):
    path = tmp_path / "module.py"
    path.write_text(text)
    built = Built(path=path, digest="", log="", build_ns=0, sandbox="", host=host, language="python")
    case = Case(name="public", public=True, specs=(SPEC,), inputs=(values().reshape(-1).view("u1"),), references=())
    suite = Suite(inputs=(SPEC,), outputs=(SPEC,), cases=(case,), signature=ONE_TENSOR)
    return asyncio.run(stage.look(built, suite, threads=1))


def test_a_module_that_three_checks_find_clean_is(stage, tmp_path):
    found = looked(stage(), tmp_path)
    assert found.clean, found
    assert found.said[0].value == "memcheck found nothing; racecheck found nothing; synccheck found nothing"


def test_an_access_outside_is_evidence_against_it(stage, tmp_path):
    found = looked(stage("memcheck_oob", FOUND_STATUS), tmp_path)
    assert caught_by(found.fault) is Layer.SANITIZERS
    assert "kernel.py:9" in found.fault[1].value


def test_a_module_that_raises_under_the_tool_is_not_clean_and_not_accused(stage, tmp_path):
    found = looked(stage(), tmp_path, forward("raise RuntimeError('not today')"))
    assert (found.clean, found.fault) == (False, ())
    assert "not today" in found.said[0].value


def test_a_tool_that_does_not_end_is_ended_and_told(stage, tmp_path):
    found = looked(stage(before="sleep 60", time_s=1.0), tmp_path)
    assert not found.clean
    assert "it took longer than 1 s" in found.said[0].value


def test_without_tool_box_or_device_it_says_why(stage, tmp_path):
    assert "not on the path" in looked(replace(stage(), find=lambda: None), tmp_path).said[0].value
    assert "only modules in Python" in looked(stage(), tmp_path, host="native").said[0].value
    assert "not free" in looked(stage(device=TakenDevice()), tmp_path).said[0].value


def test_winners_are_looked_at_unless_told_otherwise(stage):
    made = stage()
    assert made.wanted(Purpose.FINAL)
    assert not made.wanted(Purpose.SEARCH)
    assert not replace(made, settings=SanitizingSettings(sanitize_final=False)).wanted(Purpose.FINAL)
