"""One call of a module in the profiler's box: a stand-in for the tool starts it as the tool does, on this machine."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_svc.boxed_tool import Subject
from evaluator_svc.cases import Case, Suite
from evaluator_svc.hosted.box import PYTHON
from evaluator_svc.profilers.ncu import Ncu
from evaluator_svc.profilers.stage import CounterStage
from evaluator_svc.roofline import UNKNOWN
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.settings import ProfilingSettings
from evaluator_svc.toolchains import Built
from shared.errors import Retryable
from shared.events import Bound, Diagnosis, Purpose
from tests.integration.hosted.softmax_module import ONE_TENSOR, RIGHT, SPEC, forward, values

SAMPLE = (Path(__file__).parents[2] / "unit" / "evaluator" / "profiles" / "ncu_softmax.csv").read_text()
STAND_IN = """#!/bin/sh
while :; do
  case "$1" in
    --csv) shift ;;
    --log-file) report=$2; shift 2 ;;
    --*) shift 2 ;;
    *) break ;;
  esac
done
{before}
"$@" || exit $?
cat {sample} > "$report"
"""
"""Takes the tool's options, starts the program, and writes a report."""
OTHERWISE = Diagnosis(bound=Bound.COMPUTE, summary="as without counters")

pytestmark = [
    pytest.mark.timeout(90),
    pytest.mark.skipif(not machine_sandbox().isolated, reason="profiles are made where there are namespaces"),
]


@pytest.fixture
def tool(tmp_path):
    """In a folder that everybody may look into, as a program's is."""
    folder = tmp_path / "tool"
    folder.mkdir()
    return folder / "ncu"


def made(tool, before=""):
    sample = tool.parent / "sample.csv"
    sample.write_text(SAMPLE)
    tool.write_text(STAND_IN.format(before=before, sample=sample))
    tool.chmod(0o755)
    return tool


def built(tmp_path, text=RIGHT):
    path = tmp_path / "module.py"
    path.write_text(text)
    return Built(path=path, digest="", log="", build_ns=0, sandbox="", host="hosted", language="python")


def run(tool, tmp_path, text, time_s=60.0, **given):
    subject = Subject(
        built=built(tmp_path, text), inputs=[SPEC], values=[memoryview(values())], signature=ONE_TENSOR, **given
    )
    return Ncu(tool=tool, time_s=time_s, profile=PYTHON).run(subject)


def test_the_module_is_called_and_the_report_is_read(tool, tmp_path):
    report = run(made(tool), tmp_path, RIGHT)
    assert report.refused == ""
    assert [kernel.kernel for kernel in report.kernels] == ["softmax_kernel"]


def test_a_module_that_raises_under_the_profiler_leaves_a_reason(tool, tmp_path):
    report = run(made(tool), tmp_path, forward("raise RuntimeError('not today')"))
    assert report.kernels == ()
    assert "not today" in report.refused


def test_inputs_that_a_call_changes_are_as_they_were_before_the_next(tool, tmp_path):
    once = forward(
        "assert getattr(self, 'first', None) in (None, float(x[0, 0]))",
        "self.first = float(x[0, 0])",
        "return x.add_(1).clone()",
    )
    assert run(made(tool), tmp_path, once, mutates=(0,)).refused == ""
    assert run(made(tool), tmp_path, once).refused != ""


def test_the_module_reaches_no_file_of_the_host_and_no_network(tool, tmp_path):
    hidden = tmp_path / "secret"
    hidden.write_text("secret")
    hidden.chmod(0o644)
    curious = forward(
        f"assert not __import__('os').path.exists({str(hidden)!r})",
        "import socket",
        "found = socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect_ex(('192.0.2.1', 9))",
        "assert found != 0, found",
        "return x.clone()",
    )
    assert run(made(tool), tmp_path, curious).refused == ""


def test_a_tool_that_does_not_end_is_ended(tool, tmp_path):
    report = run(made(tool, before="sleep 60"), tmp_path, RIGHT, time_s=1.0)
    assert report.refused.startswith("it took longer than 1 s")


class FreeDevice:
    """Always to be had."""

    @asynccontextmanager
    async def exclusive(self):
        yield 1


class TakenDevice:
    @asynccontextmanager
    async def exclusive(self):
        raise Retryable("the cores were not free for 1 s")
        yield


def diagnosed(stage, tmp_path, host="hosted"):
    data = values()
    case = Case(name="public", public=True, specs=(SPEC,), inputs=(data.reshape(-1).view("u1"),), references=())
    suite = Suite(inputs=(SPEC,), outputs=(SPEC,), cases=(case,), signature=ONE_TENSOR)
    made_of = replace(built(tmp_path), host=host)
    return asyncio.run(
        stage.diagnosis(made_of, suite, threads=1, floors=UNKNOWN, measured_ns=75_000.0, otherwise=OTHERWISE)
    )


def stage_for(tool, device=None):
    found = tool if tool is None or os.access(tool, os.X_OK) else None
    return CounterStage(
        device=device or FreeDevice(), settings=ProfilingSettings(), find=lambda: found, profile=lambda: PYTHON
    )


def test_winners_are_profiled_and_others_where_that_is_asked_for(tool):
    stage = stage_for(None)
    assert stage.wanted(Purpose.FINAL)
    assert not stage.wanted(Purpose.SEARCH)
    assert replace(stage, settings=ProfilingSettings(profile_search=True)).wanted(Purpose.SEARCH)


def test_counters_make_the_diagnosis(tool, tmp_path):
    found = diagnosed(stage_for(made(tool)), tmp_path)
    assert found.bound is Bound.MEMORY
    assert "78%" in found.summary
    assert {"measured_ns", "memory_floor_ns", "compute_floor_ns"} < {entry.name for entry in found.evidence}


def reason(found):
    assert replace(found, evidence=()) == OTHERWISE
    return found.evidence[-1].value


def test_without_the_tool_the_diagnosis_is_what_it_was_and_says_why(tool, tmp_path):
    assert reason(diagnosed(stage_for(None), tmp_path)) == "unavailable: ncu (Nsight Compute) is not on the path"


def test_a_device_that_is_taken_costs_the_counters_and_nothing_else(tool, tmp_path):
    said = reason(diagnosed(stage_for(made(tool), TakenDevice()), tmp_path))
    assert said == "unavailable: Retryable: the cores were not free for 1 s"


def test_a_driver_that_forbids_counters_is_not_asked_for_them(tool, tmp_path):
    stage = replace(stage_for(made(tool)), restricted=lambda: True)
    assert "ERR_NVGPUCTRPERM" in reason(diagnosed(stage, tmp_path))
    refuses = 'echo "==ERROR== ERR_NVGPUCTRPERM - no permission" > "$report"; exit 1'
    assert "ERR_NVGPUCTRPERM - no permission" in reason(diagnosed(stage_for(made(tool, before=refuses)), tmp_path))


def test_a_kernel_that_runs_outside_of_python_is_not_profiled_and_says_so(tool, tmp_path):
    assert "only modules in Python" in reason(diagnosed(stage_for(made(tool)), tmp_path, host="native"))
