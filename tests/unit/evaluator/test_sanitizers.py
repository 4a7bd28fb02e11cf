"""What a sanitizer wrote is read as it means it, and decides what it may decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.sanitizers.compute_sanitizer import CHECKS, Looked
from evaluator_svc.sanitizers.report import FOUND_STATUS, Found, complaint, parse
from evaluator_svc.sanitizers.stage import SANITIZERS, decide

FOLDER = Path(__file__).parent / "sanitizers"
CLEAN, HAZARDS_NONE, BEYOND = (
    (FOLDER / f"{name}.txt").read_text() for name in ("memcheck_ok", "racecheck_ok", "memcheck_oob")
)
HAZARD = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at g0+0x1f0 in kernel.py:9
=========     and Read access at g0+0x250 in kernel.py:11 [128 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
NOTHING = "========= COMPUTE-SANITIZER\n========= Target application terminated before first instrumented API call\n"


def test_reports_of_right_kernels_tell_of_no_error():
    assert parse(CLEAN, 0) == Found(errors=0)
    assert parse(HAZARDS_NONE, 0) == Found(errors=0)


def test_the_first_finding_says_what_and_where():
    found = parse(BEYOND, FOUND_STATUS)
    assert found.errors == 114
    assert found.first.startswith(
        "Invalid __global__ read of size 16 bytes; at k+0xa0 in kernel.py:9; by thread (96,0,0)"
    )
    assert parse(HAZARD, FOUND_STATUS).first.startswith("Error: Race reported between Write access at g0+0x1f0")


@pytest.mark.parametrize(
    ("text", "status"),
    [(CLEAN, 1), (CLEAN, FOUND_STATUS), (BEYOND, 0), (BEYOND, None), (CLEAN, None), ("", 0), (NOTHING, 0)],
)
def test_what_contradicts_itself_or_did_not_end_is_no_result(text, status):
    assert parse(text, status).errors is None


def test_why_nothing_was_looked_at_is_the_tools_own_word():
    assert complaint(NOTHING) == "Target application terminated before first instrumented API call"
    assert complaint("") == ""


def looked(*errors):
    made = []
    for check, count in zip(CHECKS, errors, strict=False):
        refused = "no device" if count is None else ""
        made.append(Looked(check=check, found=Found(errors=count, first="there" if count else ""), refused=refused))
    return made


def test_only_a_kernel_that_every_check_found_clean_is():
    assert decide(looked(0, 0, 0)).clean
    for less in ((), (0,), (0, 0), (0, 0, 1), (0, 2), (None,), (0, 0, None)):
        assert not decide(looked(*less)).clean, less


def test_an_access_outside_is_the_kernels_fault_and_a_hazard_is_told():
    fault = decide(looked(114)).fault
    assert caught_by(fault) is Layer.SANITIZERS
    assert fault[1].value == "there (114 in all)"
    hazard = decide(looked(0, 3))
    assert hazard.fault == ()
    assert [(entry.name, entry.value) for entry in hazard.said] == [
        (SANITIZERS, "memcheck found nothing; racecheck: there (3 in all)")
    ]


def test_a_tool_that_cannot_look_accuses_nobody():
    found = decide(looked(0, None))
    assert (found.clean, found.fault) == (False, ())
    assert "racecheck unavailable: no device" in found.said[0].value
