"""Why an emulated kernel ended: what the plugin saw first, then how QEMU ended.

| what happened | status | caught by |
|---|---|---|
| a system call, during a call or by anything but the harness | CHEAT | sandbox |
| code of the kernel ran outside of its call, or went into the harness | CHEAT | result channel |
| more or fewer calls than were asked for | CHEAT | result channel |
| access beyond the guest's memory | CHEAT | sandbox |
| write into an input | MUTATED_INPUT | input immutability |
| time is up | TIMEOUT | resource limits |
| a fatal signal | RUNTIME_ERROR | crash |
"""

from __future__ import annotations

import signal

from evaluator_svc.emulated.counts import Seen
from evaluator_svc.layers import Layer
from evaluator_svc.runner.ending import RunFailure, failure
from shared.errors import Fatal
from shared.events import Status

SYSCALL, ELSEWHERE, MARKS, INPUT, BEYOND = range(1, 6)
"""``Seen.why``, as ``counter.c`` numbers them."""
NOT_MAPPED = 0x4B45
"""Exit code of the harness where its buffers cannot be mapped."""


def broke(seen: Seen) -> RunFailure | None:
    """The rule that the plugin saw broken."""
    if seen.why == SYSCALL:
        return failure(Status.CHEAT, Layer.SANDBOX, forbidden=f"system call {seen.detail} of the guest")
    if seen.why == ELSEWHERE:
        return failure(Status.CHEAT, Layer.CHANNEL, reason="ran outside of its call, where nothing is counted")
    if seen.why == MARKS:
        return failure(Status.CHEAT, Layer.CHANNEL, reason="went into the code that begins and ends calls")
    if seen.why == INPUT:
        return failure(Status.MUTATED_INPUT, Layer.INPUTS, fault=f"write to input buffer {seen.detail}")
    if seen.why == BEYOND:
        return failure(Status.CHEAT, Layer.SANDBOX, forbidden="access beyond the emulated machine's memory")
    return None


def ended(seen: Seen, exit_status: int | None, calls: int, printed: str) -> RunFailure | None:
    """None when it came back, whatever it returned. ``exit_status``: 128 + signal, None when time was up.

    Raises:
        Fatal: QEMU itself failed.
    """
    found = broke(seen)
    if found is not None:
        return found
    if seen.exited and seen.code == NOT_MAPPED and not seen.begun:
        raise Fatal("the emulated harness cannot map its buffers")
    if seen.exited and (seen.begun == seen.ended == calls or (seen.code != 0 and seen.begun == seen.ended)):
        return None
    if seen.begun == 0 and exit_status is not None and exit_status < 128:
        raise Fatal(f"QEMU ended with status {exit_status}: {printed.strip()[:200]}")
    if exit_status is not None and exit_status > 128:
        return failure(Status.RUNTIME_ERROR, Layer.CRASH, signal=signal.Signals(exit_status - 128).name)
    return failure(Status.CHEAT, Layer.CHANNEL, exited=f"after {seen.ended} of {calls} calls")
