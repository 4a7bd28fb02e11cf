"""Whether two runs on equal inputs gave equal bytes, and what to say when they did not (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluator_svc.arrays import Bytes, chunk, flat, on_device, on_host
from evaluator_svc.cases import Case, elements, widened
from evaluator_svc.judge import Verdict
from evaluator_svc.layers import Layer, caught
from shared.events import Entry, Status

COMPARED = 1 << 20
"""Bytes at a time; on a device a chunk of them."""


def unequal(case: Case, one: Sequence[Bytes], other: Sequence[Bytes], reason: str) -> Verdict | None:
    """NONDETERMINISTIC where two runs on the inputs of ``case`` gave unequal outputs; None where all are equal."""
    for output, runs in enumerate(zip(one, other, strict=True)):
        if first_difference(*runs) is not None:
            return nondeterministic(case, output, runs, reason)
    return None


def nondeterministic(case: Case, output: int, runs: tuple[Bytes, Bytes], reason: str) -> Verdict:
    """``runs`` gave unequal bytes for ``output`` on the inputs of ``case``."""
    spec = case.references[output].spec
    byte = first_difference(*runs) or 0
    at = byte // spec.dtype.itemsize
    values = [str(widened(on_host(elements(run, spec.dtype)[at : at + 1]), spec.dtype)[0]) for run in runs]
    evidence = (
        caught(Layer.DETERMINISM),
        Entry(name="reason", value=reason),
        Entry(name="first_differing_index", value=str([int(i) for i in np.unravel_index(at, spec.shape or (1,))])),
        Entry(name="values", value=" and ".join(values)),
    )
    return Verdict(status=Status.NONDETERMINISTIC, evidence=evidence)


def first_difference(one: Bytes, other: Bytes) -> int | None:
    """Position of the first unequal byte, None for equal bytes. Both lie in the same place."""
    first, second = flat(one), flat(other)
    step = chunk(first) if on_device(first) else COMPARED
    for start in range(0, first.size, step):
        mine, theirs = first[start : start + step], second[start : start + step]
        if not bool(np.array_equal(mine, theirs)):
            return start + int(np.argmax(mine != theirs))
    return None
