"""How many sets of buffers a process is timed on (pure)."""

from __future__ import annotations

import math

from evaluator_svc.cases import Suite
from evaluator_svc.runner.layout import set_bytes
from evaluator_svc.settings import TimingSettings

SPARE = 4.0
"""A call that is checked is slower than one that is timed, and the longest block is twice a block."""


SHARES = 10
"""Of a GPU's memory: a candidate's sets are there four times, its own results among them, for two candidates at a time
(``EVALUATOR_SLOTS``), and once for the baselines; a share is left for values and answers."""
CACHES = 2.0
"""Buffers of so many times a cache replace all that it held."""


def sets_for(
    suite: Suite, timing: TimingSettings, *, expected_ns: float = 0.0, cache_bytes: int = 0, memory_bytes: int = 0
) -> int:
    """As many as the longest block can have calls, if one takes ``expected_ns`` (0: not known), within the limits.

    ``cache_bytes``: of the second-level cache of the GPU that holds the sets; 0: they lie in the host's memory. There
    they are enough for that cache to have lost a set when its turn comes again. ``memory_bytes``: of that GPU's memory,
    of which they take no more than a share, 0 where it is not known.
    """
    each = set_bytes(suite.inputs, suite.outputs)
    most = timing.gpu_sets_bytes_max if cache_bytes else timing.sets_bytes_max
    room = (min(most, memory_bytes // SHARES) if memory_bytes else most) // each
    needed = math.ceil(SPARE * timing.block_ns / expected_ns) if expected_ns > 0 else timing.sets_max
    return max(2, min(timing.sets_max, room, max(needed, math.ceil(CACHES * cache_bytes / each))))
