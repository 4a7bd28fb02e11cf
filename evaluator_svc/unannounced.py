"""Values unlike the operator's own, among the calls of a process that is timed (pure).

Where buffers lie, what memory holds and how many calls there are tells a kernel whether it is checked or timed. Who
is careful when checked, and when timed computes what suffices for the operator's own distribution (no maximum in a
softmax, no bounds in a clamp whose inputs lie within them, a shorter polynomial), would be right on every timed value.
So each timed process gets held-out values as well, in blocks that begin as any other does, and they are judged against
fp64 as in the check. Nothing tells those calls apart but the values themselves.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from evaluator_svc.cases import Case
from evaluator_svc.freshness import Values

BLOCKS = 6
"""At least, over which they are spread; a measurement has some thirty."""
CHANCE = 0.2
"""Of such a block before a claimed one, and after it."""
BYTES_MOST = 1 << 26
"""Of answers that are judged against fp64 in one process, half a second; two are judged however large they are."""
FEWEST = 2


class Unannounced:
    """What one process still has to be given. ``calls``: of a claimed block, so that a long call is not made often."""

    def __init__(self, cases: Sequence[Case], draw: random.Random, *, calls: int) -> None:
        self._draw = draw
        each = sum(reference.spec.nbytes for reference in cases[0].references) if cases else 0
        most = min(max(FEWEST, BYTES_MOST // max(1, each)), BLOCKS * max(1, calls), len(cases))
        self._left = draw.sample(list(cases), most)
        self._each = math.ceil(most / BLOCKS)

    @property
    def left(self) -> int:
        return len(self._left)

    def due(self) -> bool:
        """By lot, while there are any."""
        return bool(self._left) and self._draw.random() < CHANCE

    def next(self, room: int) -> list[Case]:
        """Those of the next block, which has ``room`` calls."""
        return [self._left.pop() for _ in range(min(self._each, len(self._left), room))]


def among(known: Sequence[Values], unlike: Sequence[Values], draw: random.Random) -> list[Values]:
    """``known`` with ``unlike`` in the place of some."""
    mixed = list(known)
    for place, values in zip(draw.sample(range(len(mixed)), len(unlike)), unlike, strict=True):
        mixed[place] = replace(values, first_use=True)
    return mixed
