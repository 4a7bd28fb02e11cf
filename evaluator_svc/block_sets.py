"""How many sets of buffers a process is timed on (pure)."""

from __future__ import annotations

import math

from evaluator_svc.cases import Suite
from evaluator_svc.runner.layout import set_bytes
from evaluator_svc.settings import TimingSettings

SPARE = 4.0
"""A call that is checked is slower than one that is timed, and the longest block is twice a block."""


def sets_for(suite: Suite, timing: TimingSettings, *, expected_ns: float = 0.0) -> int:
    """As many as the longest block can have calls, if one takes ``expected_ns`` (0: not known), within the limits."""
    room = timing.sets_bytes_max // set_bytes(suite.inputs, suite.outputs)
    needed = math.ceil(SPARE * timing.block_ns / expected_ns) if expected_ns > 0 else timing.sets_max
    return max(2, min(timing.sets_max, room, needed))
