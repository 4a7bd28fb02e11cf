"""What every process of this project ends with: the one list of exit codes (pure)."""

from __future__ import annotations

import signal
from collections.abc import Mapping

DONE = 0
FAILED = 1
BAD_INPUT = 2
"""Also what ``click`` ends with for options and arguments that do not parse."""
DIVERGED = 3
STUCK = 70
"""``EX_SOFTWARE`` of sysexits.h."""
PAUSED = 75
"""``EX_TEMPFAIL`` of sysexits.h: try again later."""
SIGNALLED = 128
"""And the signal's number, as shells have it."""
INTERRUPTED, TERMINATED = SIGNALLED + signal.SIGINT, SIGNALLED + signal.SIGTERM

MEANINGS: Mapping[int, str] = {
    DONE: 'done; "no kernel beats the baseline" is a result too',
    FAILED: "failed or cancelled; of `evaluate` and the checks: something did not pass",
    BAD_INPUT: "bad input or settings, or a call that a server refused: one line on stderr says what and where",
    DIVERGED: "a replay differs from its log",
    STUCK: "of an evaluator process: an evaluation could not be ended; start it again",
    PAUSED: "the search is paused: nobody can write for it, and `kernelevolve resume` goes on with it",
    INTERRUPTED: "interrupted; `kernelevolve resume` goes on, a search on a server never stopped",
    TERMINATED: "terminated; the same",
}


def listed() -> str:
    """A line for each, as help texts show them."""
    return "\n".join(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items())
