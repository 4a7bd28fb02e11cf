"""The kernel audit tells a candidate's own kernels from library operators."""

import json
import subprocess
import sys

import pytest

from evaluator_svc.hosted.wire import TEXT_BYTES
from evaluator_svc.kernel_policy import parse


@pytest.fixture(scope="module")
def seen():
    command = [sys.executable, "-W", "ignore", "-m", "tests.integration.hosted_build.audited_calls"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name: parse(json.dumps(report)) for name, report in json.loads(done.stdout).items()}


@pytest.mark.parametrize(
    ("way", "own"),
    [
        ("library", {}),
        ("views", {}),
        ("nothing", {}),
        ("fallback", {}),
        ("python operator", {}),
        ("triton", {"doubled": 1}),
        ("mixed", {"doubled": 1}),
        ("extension", {"fast.forward": 1}),
        ("method", {"fast.Worker.run": 1}),
        ("operator", {"candidate_native.twice": 1}),
    ],
)
def test_runs_of_own_kernels_are_counted_by_name(seen, way, own):
    assert seen[way].own == own


@pytest.mark.parametrize(
    ("way", "operators"),
    [
        ("library", {"aten.mm"}),
        ("python operator", {"candidate.hidden"}),
        ("fallback", {"aten.mm"}),
        ("mixed", {"aten.softmax"}),
        ("views", set()),
        ("triton", set()),
        ("nothing", set()),
    ],
)
def test_library_operators_that_compute_are_told_and_those_that_only_look_are_not(seen, way, operators):
    assert set(seen[way].library) == operators


def test_a_report_tells_how_much_an_operator_gave(seen):
    calls, elements, ns = seen["library"].library["aten.mm"]
    assert (calls, elements) == (1, 16)
    assert ns > 0


def test_the_longest_report_fits_the_page_that_it_is_written_to():
    from evaluator_svc.hosted.kernel_audit import NAME_CHARS, SHOWN

    names = [f"{i}" + "k" * (NAME_CHARS - 1) for i in range(SHOWN)]
    longest = {
        "own": dict.fromkeys(names, 10**6),
        "library": {name: [10**6, 10**12, 10**12] for name in names},
        "compiled": False,
        "replays": 10**6,
    }
    assert len(json.dumps(longest)) < TEXT_BYTES
