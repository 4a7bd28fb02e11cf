"""Whether a kernel wrote all of its outputs: which elements still hold the poison of before the call (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.judge import Verdict
from evaluator_svc.layers import Layer, caught
from evaluator_svc.tensors import TensorSpec
from shared.events import Entry, Status

Kept = Iterable[NDArray[np.bool_]]
"""Per element, whether it still holds its poison, in chunks, where the output lies."""
BY_CHANCE = 4
"""More 32-bit elements than this that keep their poison in one run are no coincidence: odds below 1e-9 up to 2**26."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Of elements that kept their poison: how many, and the first (-1: none)."""

    count: int = 0
    first: int = -1


def counted(kept: Kept) -> Counted:
    """In one run."""
    count, first, start = 0, -1, 0
    for part in kept:
        here = int(np.count_nonzero(part))
        if here and first < 0:
            first = start + int(np.argmax(part))
        count, start = count + here, start + part.size
    return Counted(count=count, first=first)


def over_runs(runs: Sequence[Iterator[NDArray[np.bool_]]]) -> tuple[Counted, int]:
    """Elements that kept their poison in every run, and how many did in some but not in all."""
    count, first, start, sometimes = 0, -1, 0, 0
    for parts in zip(*runs, strict=True):
        always = reduce(and_, parts)
        here = int(np.count_nonzero(always))
        if here and first < 0:
            first = start + int(np.argmax(always))
        sometimes += int(np.count_nonzero(reduce(or_, parts))) - here
        count, start = count + here, start + always.size
    return Counted(count=count, first=first), sometimes


def chance_over(runs: int, spec: TensorSpec) -> int:
    """Elements that may keep their poison in one of ``runs`` by chance: generously, four times what is expected."""
    return BY_CHANCE + (4 * runs * spec.numel >> 8 * spec.dtype.itemsize)


def unwritten(spec: TensorSpec, kept: Counted, *, by_chance: int) -> Verdict | None:
    """The verdict on elements that hold their poison, where more than ``by_chance`` (or all) do."""
    if not kept.count or (kept.count <= by_chance and kept.count != spec.numel):
        return None
    index = [int(i) for i in np.unravel_index(kept.first, spec.shape or (1,))]
    evidence = (
        caught(Layer.POISON),
        Entry(name="reason", value="part of the output was never written"),
        Entry(name="unwritten_elements", value=f"{kept.count} of {spec.numel}"),
        Entry(name="first_wrong_index", value=str(index)),
    )
    return Verdict(status=Status.WRONG_RESULT, evidence=evidence)
