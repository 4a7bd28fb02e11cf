"""What a kernel needs of a GPU that is not there: the report's form, what cannot be launched, and what fits beside."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.resources import Report, Resources, beyond, entries, occupancy, parse, spills
from shared import chips
from shared.events import Status

H200 = chips.load("nvidia-sm_90").gpu
MI300 = chips.load("amd-gfx942").gpu
KERNEL = Resources(name="k", blocks=64, warps=4, shared=0, registers=32, stack=0)


def report(*kernels: Resources, error: str = "") -> Report:
    return Report(kernels=kernels, error=error)


def test_a_kernel_within_the_limits_may_be_launched():
    assert beyond(report(KERNEL), H200) is None


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (replace(KERNEL, shared=524288), "k needs 524288 bytes of shared memory a block, sm_90 has 232448"),
        (replace(KERNEL, warps=64), "k needs 2048 threads a block, sm_90 has 1024"),
        (replace(KERNEL, registers=256), "k needs 256 registers a thread, sm_90 has 255"),
        (replace(KERNEL, registers=128, warps=32), "k needs 131072 registers a block, sm_90 has 65536"),
    ],
)
def test_a_kernel_beyond_a_limit_is_refused_with_the_limit_named(kernel, said):
    status, evidence = beyond(report(kernel), H200)
    assert status is Status.LAUNCH_FAILED
    assert said in [entry.value for entry in evidence]


def test_a_compilers_error_comes_before_limits():
    status, evidence = beyond(report(replace(KERNEL, warps=64), error="CompilationError: no"), H200)
    assert status is Status.COMPILE_ERROR
    assert evidence[1].value == "CompilationError: no"


@pytest.mark.parametrize(
    ("kernel", "gpu", "expected"),
    [
        # NVIDIA's occupancy calculator for compute capability 9.0.
        (replace(KERNEL, registers=32), H200, (64, "warps")),
        (replace(KERNEL, registers=64), H200, (32, "registers")),
        (replace(KERNEL, registers=255, warps=8), H200, (8, "registers")),
        (replace(KERNEL, registers=32, shared=100 * 1024), H200, (8, "shared memory")),
        (replace(KERNEL, registers=16, warps=1), H200, (32, "blocks")),
        # 512 registers a lane and SIMD, in steps of 8, at most 8 wavefronts: 64 leave 8, 65 (72) leave 7.
        (replace(KERNEL, registers=64), MI300, (32, "warps")),
        (replace(KERNEL, registers=65, warps=1), MI300, (28, "registers")),
        (replace(KERNEL, registers=32, shared=40 * 1024), MI300, (4, "shared memory")),
    ],
)
def test_occupancy_is_what_the_vendors_calculators_say(kernel, gpu, expected):
    assert occupancy(kernel, gpu) == expected


def test_what_the_compiler_did_not_tell_is_unknown_and_not_nothing():
    silent = replace(KERNEL, registers=None, stack=None)
    assert occupancy(silent, H200) is None
    assert beyond(report(silent), H200) is None
    (line,) = entries(report(silent), H200)
    assert "registers" not in line.value
    assert "spilled" not in line.value


def test_a_report_names_kernels_that_spill():
    assert spills(report(KERNEL, replace(KERNEL, name="s", stack=8))) == ["s"]


def test_a_report_reads_back_what_was_told():
    text = json.dumps({"kernels": [{"name": "k", "blocks": 3, "warps": 4, "shared": 5, "registers": 6}], "error": ""})
    assert parse(text) == report(Resources(name="k", blocks=3, warps=4, shared=5, registers=6))


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_other_report_is_none(text):
    assert parse(text) is None


@given(
    st.dictionaries(
        st.sampled_from(["name", "blocks", "warps", "shared", "registers", "stack"]),
        st.integers() | st.text() | st.none(),
    )
)
def test_a_forged_kernel_is_read_or_refused_but_never_raises(kernel):
    found = parse(json.dumps({"kernels": [kernel], "error": ""}))
    if found is not None:
        assert beyond(found, H200) is None or beyond(found, H200)[0] is Status.LAUNCH_FAILED
        assert entries(found, MI300)
