"""What the table of a verdict has rows for: what was found, and nothing else."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from cli.commands.explain import measurements
from shared.events import Bound, Diagnosis, Entry, Evaluation, Status, Trust


def printed(evaluation):
    console = Console(file=StringIO(), width=120)
    console.print(measurements("k.cpp against softmax", evaluation))
    return console.file.getvalue()


def test_a_kernel_that_was_never_measured_has_no_rows_of_a_diagnosis():
    evidence = (Entry(name="load", value="undefined symbol: ke_launch"),)
    text = printed(Evaluation(status=Status.LAUNCH_FAILED, evidence=evidence))
    assert "undefined symbol: ke_launch" in text
    assert "bound by" not in text
    assert "because" not in text


def test_what_a_kernel_is_bound_by_is_told_with_its_reasons():
    diagnosis = Diagnosis(
        bound=Bound.MEMORY, summary="at the memory's rate", evidence=(Entry(name="bytes", value="8388608"),)
    )
    text = printed(Evaluation(status=Status.PASSED, trust=Trust.L2, diagnosis=diagnosis))
    assert "memory: at the memory's rate" in text
    assert "8388608" in text
