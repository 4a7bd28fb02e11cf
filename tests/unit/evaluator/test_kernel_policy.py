"""Whether a kernel of its own computed: what the text defines, and what an audited call showed."""

import json

import pytest

from evaluator_svc.kernel_policy import LibraryKernels, Seen, decide, parse
from evaluator_svc.layers import Layer, caught_by
from shared.events import Entry, Status

MATMUL = {"aten.mm": (1, 64, 900), "aten.add": (2, 128, 100)}
KERNELS = (Entry(name="kernels", value="softmax"),)
EXTENSION = (Entry(name="features", value="streams"), Entry(name="extensions", value="fast"))


def seen(own=None, library=None, *, compiled=False, replays=0):
    return Seen(own=own or {}, library=library or {}, compiled=compiled, replays=replays)


def told(finding):
    return {entry.name: entry.value for entry in finding.evidence}


@pytest.mark.parametrize("static", [KERNELS, EXTENSION])
def test_a_module_whose_own_kernel_ran_passes_and_its_library_operators_are_told(static):
    finding = decide(static, seen({"softmax": 2}, MATMUL))
    assert finding.status is Status.PASSED
    features = {entry.name: entry.value for entry in static if entry.name == "features"}
    assert told(finding) == features | {
        "own_kernels": "softmax (2x)",
        "library_operators": "aten.mm 1x 90 %, aten.add 2x 10 %",
    }


@pytest.mark.parametrize(
    ("static", "report", "reason"),
    [
        ((), seen(library=MATMUL), "defines no kernel of its own: a composition of library operators"),
        ((), seen({"claimed": 5}), "defines no kernel of its own: a composition of library operators"),
        ((), seen(compiled=True), "defines no kernel of its own: a composition that torch.compile compiles"),
        (
            (Entry(name="features", value="gc, torch.compile"),),
            seen(library=MATMUL),
            "defines no kernel of its own: a composition that torch.compile compiles",
        ),
        (KERNELS, seen(library=MATMUL), "defines softmax, but none of it ran: it fell back"),
        (EXTENSION, seen({"fast.forward": 0}), "defines fast, but none of it ran: it fell back"),
        (
            (*KERNELS, Entry(name="features", value="reference")),
            seen(library=MATMUL),
            "defines softmax, but none of it ran and it inherits the reference: it fell back",
        ),
        (KERNELS, None, "the audited call gave no usable report"),
    ],
)
def test_a_module_without_a_kernel_of_its_own_at_work_is_no_custom_kernel(static, report, reason):
    finding = decide(static, report)
    assert finding.status is Status.NO_CUSTOM_KERNEL
    assert caught_by(finding.evidence) is Layer.KERNELS
    assert told(finding)["reason"] == reason


def test_library_kernels_may_be_allowed_but_a_report_that_is_none_may_not():
    allowed = decide((), seen(library=MATMUL), library=LibraryKernels.ALLOW)
    assert allowed.status is Status.PASSED
    assert told(allowed)["own_kernels"] == "none"
    assert decide(KERNELS, None, library=LibraryKernels.ALLOW).status is Status.NO_CUSTOM_KERNEL


def test_a_graph_that_is_replayed_tells_no_kernels_and_convicts_nobody():
    assert decide(KERNELS, seen(replays=1)).status is Status.PASSED
    assert decide((), seen(replays=1)).status is Status.NO_CUSTOM_KERNEL


def test_a_report_is_read_as_it_was_written():
    report = {"own": {"k": 1}, "library": {"aten.mm": [1, 64, 900]}, "compiled": False, "replays": 0}
    assert parse(json.dumps(report)) == seen({"k": 1}, {"aten.mm": (1, 64, 900)})


@pytest.mark.parametrize(
    "report",
    [
        "",
        "[]",
        "{}",
        '{"own": [], "library": {}, "compiled": false}',
        '{"own": {"k": -1}, "library": {}, "compiled": false, "replays": 0}',
        '{"own": {"k": true}, "library": {}, "compiled": false, "replays": 0}',
        '{"own": {"k": 1e300}, "library": {}, "compiled": false, "replays": 0}',
        '{"own": {}, "library": {"a": [1, 2]}, "compiled": false, "replays": 0}',
        "[" * 100_000,
    ],
)
def test_a_report_of_another_form_is_none(report):
    assert parse(report) is None


def test_names_in_a_report_are_shown_as_text_of_bounded_length():
    found = parse(json.dumps({"own": {"\x1b[2J" * 100: 1}, "library": {}, "compiled": False, "replays": 0}))
    assert found is not None
    (name,) = found.own
    assert name.isprintable()
    assert len(name) == 80
