"""The end of a runner, classified from what was seen and what it reported."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner import ending, protocol
from evaluator_svc.runner.layout import plan
from evaluator_svc.runner.protocol import Kind, Report
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from shared.events import Status

MUTATED, CRASHED = Status.MUTATED_INPUT, Status.RUNTIME_ERROR
LAYOUT = plan([TensorSpec(shape=(1024,), dtype=DType.F32)], [TensorSpec(shape=(1024,), dtype=DType.F32)], 1)
BASE = 0x7F0000000000
INPUT, OUTPUT = LAYOUT.regions
INPUT_END, OUTPUT_END = INPUT.at + INPUT.size, OUTPUT.at + OUTPUT.size


def report(**fields):
    empty = dict.fromkeys(("kind", "signal", "code", "syscall", "address", "error", "stack", "refused"), 0)
    return Report(**{**empty, "base": BASE, "text": "", **fields})


def fault(address, *, write):
    return report(kind=Kind.SIGNAL, signal=signal.SIGSEGV, address=address, error=2 * write, stack=0x7FFF00000000)


@pytest.mark.parametrize(
    ("said", "exit_status", "status", "words"),
    [
        (fault(BASE + INPUT.at, write=True), 139, MUTATED, "write to byte 0 of input 0"),
        (fault(BASE + INPUT_END, write=False), 139, CRASHED, "read byte 0 past the end of input 0"),
        (fault(BASE + OUTPUT_END, write=True), 139, CRASHED, "write byte 0 past the end of output 0"),
        (fault(8, write=False), 139, CRASHED, "read through a null pointer"),
        (fault(0x7FFF00000000 - 64, write=True), 139, CRASHED, "past the end of the stack"),
        (fault(0x1234567890, write=False), 139, CRASHED, "of an unmapped address"),
        (report(kind=Kind.SIGNAL, signal=signal.SIGXCPU), 152, Status.TIMEOUT, "SIGXCPU"),
        (report(kind=Kind.SIGNAL, signal=signal.SIGSYS, syscall=41), 159, Status.CHEAT, "socket"),
        (report(), 128 + signal.SIGSYS, Status.CHEAT, "a system call"),
        (report(), 0, Status.CHEAT, "by itself with code 0"),
        (report(), 3, Status.CHEAT, "by itself with code 3"),
        (report(), None, Status.CHEAT, "closed the result channel"),
        (report(kind=Kind.CHANNEL), 76, Status.CHEAT, "closed the result channel"),
        (report(), 128 + signal.SIGKILL, Status.OUT_OF_MEMORY, "out of memory"),
        (report(), 128 + signal.SIGSEGV, Status.RUNTIME_ERROR, "SIGSEGV"),
        (report(kind=Kind.SIGNAL, signal=signal.SIGSEGV, refused=1 << 36), 139, Status.OUT_OF_MEMORY, str(1 << 36)),
        (report(refused=1 << 36), 128 + signal.SIGABRT, Status.OUT_OF_MEMORY, str(1 << 36)),
        (report(refused=1 << 36), 0, Status.CHEAT, "by itself with code 0"),
    ],
)  # fmt: skip
def test_an_ending_has_one_status_and_says_why(said, exit_status, status, words):
    found = ending.classify(said, exit_status, LAYOUT)
    assert found.status is status
    assert words in "; ".join(entry.value for entry in found.evidence)


@given(st.binary(min_size=protocol.REPORT.size, max_size=4096), st.none() | st.integers(0, 255))
def test_a_forged_report_is_classified_like_any_other(page, exit_status):
    found = ending.classify(protocol.report(page), exit_status, LAYOUT)
    assert found.status is not Status.PASSED
    assert found.evidence
    assert all(entry.value.isprintable() for entry in found.evidence)


@given(st.binary(max_size=64))
def test_bytes_that_are_no_reply_are_none(data):
    read = protocol.reply(data)
    assert read is None or (len(data) == protocol.REPLY.size and data[:4] == b"OVEK")


@pytest.mark.parametrize("device_ns", [None, 0, 900_000, 1_000_000, 1_300_000])
def test_a_devices_time_inside_of_the_controllers_is_no_finding(device_ns):
    assert ending.impossible_clock(device_ns, 1_000_000) is None


@pytest.mark.parametrize("device_ns", [1_400_000, 1 << 62])
def test_a_device_that_worked_for_longer_than_its_calls_took_is_a_forged_clock(device_ns):
    found = ending.impossible_clock(device_ns, 1_000_000)
    assert found.status is Status.CHEAT
    assert caught_by(found.evidence) is Layer.CLOCKS
