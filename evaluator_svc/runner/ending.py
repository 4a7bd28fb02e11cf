"""Why a runner ended (pure): from what the controller saw and, for evidence, what the runner reported.

| what happened | status | caught by |
|---|---|---|
| time is up, on the clock or on the processor | TIMEOUT | resource limits |
| refused system call (socket, fork, exec, open …) | CHEAT | sandbox |
| exit of its own accord, even with code 0 | CHEAT | result channel |
| foreign bytes on the result channel, or its loss | CHEAT | result channel |
| more threads alive after a call than were granted | CHEAT | thread audit |
| processor time spent after the answer to a command, or before it was asked to work | CHEAT | independent clocks |
| a device's time longer than the controller's around it | CHEAT | independent clocks |
| processor time spent between two commands | CHEAT | thread audit |
| a device at work when no call is under way | CHEAT | output fingerprint |
| an allocation was refused and the kernel failed or gave up; killed for memory | OUT_OF_MEMORY | resource limits |
| printed more than it may | RUNTIME_ERROR | resource limits |
| write into an input | MUTATED_INPUT | input immutability |
| access just outside of a buffer | RUNTIME_ERROR | output contract |
| any other fatal signal, an exception | RUNTIME_ERROR | crash |
| cannot be loaded, no ke_launch | LAUNCH_FAILED | launch |
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator_svc import syscalls
from evaluator_svc.layers import Layer, caught
from evaluator_svc.runner.layout import Layout
from evaluator_svc.runner.protocol import Kind, Report
from shared.events import Entry, Status

WRITE_FAULT = 2
"""Bit of the x86 page-fault error code that is set when the access was a write."""
STACK_REACH = 1 << 20
"""A fault this close to the stack pointer is a stack overflow; bytes."""
NULL_REACH = 1 << 16
"""Addresses below are offsets from a null pointer; Linux maps nothing there (``vm.mmap_min_addr``)."""
UNHEARD = "a system call with signals blocked, as system() and posix_spawn() make, or of another architecture"
KILLED = 128 + signal.SIGKILL
WORKED_BEFORE, WORKED_AFTER = "worked_before_it_was_asked_ns", "worked_after_its_answer_ns"
WORKED_BETWEEN, DEVICE = "worked_between_calls_ns", "device_ns"
DEVICE_BUSY = "own_operation_on_the_device_ns"
TIMES = (WORKED_BEFORE, WORKED_AFTER, WORKED_BETWEEN, DEVICE, DEVICE_BUSY)
"""Evidence that is a time: it accuses when it is found again, in a process of its own each time, because what a
hypervisor takes is accounted to whom it hits."""
ACCUSATIONS_CONFIRMED = 2
"""Times that such evidence is looked for again. A disturbed moment rarely lasts for three looks."""
DEVICE_SHARE, DEVICE_SLACK_NS = 1.05, 300_000
"""What events of a device may come to in times of the wall clock around them, and besides: they tell half
microseconds, and of very many calls only the first have any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    """The candidate's fault, as data."""

    status: Status
    evidence: tuple[Entry, ...]


def accuses_by_times(status: Status, evidence: Sequence[Entry]) -> bool:
    """Whether a kernel is accused of what only a time tells."""
    return status is Status.CHEAT and any(entry.name in TIMES for entry in evidence)


def failure(status: Status, layer: Layer, **evidence: object) -> RunFailure:
    """A failure that ``layer`` caught; entries without a value are left out."""
    said = tuple(Entry(name=k, value=str(v)) for k, v in evidence.items() if v != "")
    return RunFailure(status=status, evidence=(caught(layer), *said))


def timed_out(limit_s: float) -> RunFailure:
    """No answer within ``limit_s`` seconds."""
    return failure(Status.TIMEOUT, Layer.LIMITS, limit_s=f"{limit_s:g}")


def spoke() -> RunFailure:
    """Bytes on the result channel that answer no question of the controller's."""
    return failure(Status.CHEAT, Layer.CHANNEL, channel="spoke on the result channel")


def not_loaded(report: Report) -> RunFailure:
    """The dynamic linker refused the library, or it has no ke_launch."""
    return failure(Status.LAUNCH_FAILED, Layer.LAUNCH, load=report.text)


def left_threads(alive: int, granted: int) -> RunFailure:
    """More threads lived after a call than were granted."""
    return failure(Status.CHEAT, Layer.THREADS, threads=f"{alive} alive after a call, {granted} granted")


def overran(where: str) -> RunFailure:
    """Bytes outside an output were overwritten."""
    return failure(Status.RUNTIME_ERROR, Layer.CONTRACT, fault=f"write {where}")


def classify(report: Report, exit_status: int | None, layout: Layout) -> RunFailure:
    """The result channel is at its end. ``exit_status`` is None when the process was still alive and had to be killed.

    Precedence: a refused system call, then memory, then the signal, then a plain exit.
    """
    if report.kind == Kind.SIGNAL and report.signal == signal.SIGSYS:
        return failure(Status.CHEAT, Layer.SANDBOX, forbidden=syscalls.describe(report.syscall), argument=report.text)
    if exit_status == 128 + signal.SIGSYS:  # killed unheard
        return failure(Status.CHEAT, Layer.SANDBOX, forbidden=UNHEARD)
    if report.kind == Kind.CHANNEL or exit_status is None:
        return failure(Status.CHEAT, Layer.CHANNEL, channel="closed the result channel")
    if report.refused and (report.kind != Kind.NONE or exit_status > 128):
        return failure(
            Status.OUT_OF_MEMORY, Layer.LIMITS, refused_bytes=report.refused, signal=_signal_name(report.signal)
        )
    if report.kind == Kind.SIGNAL:
        return _fault(report, layout)
    if exit_status == KILLED:
        return failure(Status.OUT_OF_MEMORY, Layer.LIMITS, killed="by the kernel, out of memory")
    if exit_status > 128:
        return failure(Status.RUNTIME_ERROR, Layer.CRASH, signal=_signal_name(exit_status - 128))
    return failure(Status.CHEAT, Layer.CHANNEL, exited=f"by itself with code {exit_status}")


def thrown(report: Report, kind: int) -> RunFailure:
    """An exception left ke_launch."""
    if kind == Kind.BAD_ALLOC or report.refused:
        return failure(Status.OUT_OF_MEMORY, Layer.LIMITS, refused_bytes=report.refused or "", exception=report.text)
    return failure(Status.RUNTIME_ERROR, Layer.CRASH, exception=report.text)


def went_on(spent_ns: int) -> RunFailure:
    """It used the processor after its answer had come."""
    return failure(Status.CHEAT, Layer.CLOCKS, **{WORKED_AFTER: spent_ns})


def began_early(spent_ns: int) -> RunFailure:
    """It used the processor for a command to make no call, when the inputs of the next one were in place."""
    return failure(Status.CHEAT, Layer.CLOCKS, **{WORKED_BEFORE: spent_ns})


def impossible_clock(device_ns: int | None, elapsed_ns: int) -> RunFailure | None:
    """A device cannot have worked for longer than its calls took; None where it may have, or tells nothing."""
    if device_ns is None or device_ns <= DEVICE_SHARE * elapsed_ns + DEVICE_SLACK_NS:
        return None
    return failure(Status.CHEAT, Layer.CLOCKS, **{DEVICE: device_ns}, controller_ns=elapsed_ns)


def device_worked(probe_ns: int) -> RunFailure:
    """Its device worked when nothing was asked of it: an operation of the controller's own had to wait for so long."""
    return failure(Status.CHEAT, Layer.LATE, reason="the device worked outside of the calls", **{DEVICE_BUSY: probe_ns})


def busy_between(spent_ns: int, pause_ns: int) -> RunFailure:
    """It used the processor while nothing was asked of it."""
    return failure(Status.CHEAT, Layer.THREADS, **{WORKED_BETWEEN: spent_ns}, in_ns=pause_ns)


def refused(report: Report, code: int) -> RunFailure:
    """ke_launch gave up with ``code`` after an allocation was refused."""
    return failure(Status.OUT_OF_MEMORY, Layer.LIMITS, refused_bytes=report.refused, return_code=code)


def _fault(report: Report, layout: Layout) -> RunFailure:
    name = _signal_name(report.signal)
    if report.signal == signal.SIGXCPU:
        return failure(Status.TIMEOUT, Layer.LIMITS, signal=name)
    if report.signal == signal.SIGXFSZ:
        return failure(Status.RUNTIME_ERROR, Layer.LIMITS, signal=name, reason="wrote or printed more than it may")
    if report.signal not in (signal.SIGSEGV, signal.SIGBUS):
        return failure(Status.RUNTIME_ERROR, Layer.CRASH, signal=name)
    access = "write" if report.error & WRITE_FAULT else "read"
    offset = report.address - report.base
    if not 0 <= offset < layout.span:
        return failure(Status.RUNTIME_ERROR, Layer.CRASH, signal=name, fault=f"{access} {_elsewhere(report)}")
    region = layout.inside_input(offset)
    if region is not None and access == "write":
        return failure(Status.MUTATED_INPUT, Layer.INPUTS, signal=name, fault=f"write to {layout.where(offset)}")
    return failure(Status.RUNTIME_ERROR, Layer.CONTRACT, signal=name, fault=f"{access} {layout.where(offset)}")


def _elsewhere(report: Report) -> str:
    if report.address < NULL_REACH:
        return "through a null pointer"
    if abs(report.address - report.stack) < STACK_REACH:
        return "past the end of the stack"
    return "of an unmapped address"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name if number else ""
    except ValueError:
        return f"signal {number}"
