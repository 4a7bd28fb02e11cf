"""Values that a process has not seen: which ones it gets next, and what they must lead to.

Every process of a candidate is new, so each case of the worker's pool is new *to it* once. A case comes with *flips*:
one element of one input takes the value of another, and part of the answer changes. Flipped values are new, too, and
differ so little from what the process has seen that only a kernel that reads everything again can tell.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluator_svc.arrays import Array, flat, largest, on_host, squares
from evaluator_svc.cases import Case, Demand, Reference, elements, widened
from evaluator_svc.judge import within
from evaluator_svc.limits import max_limit, tolerance
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType

SHOWS = 2.0
"""A flip counts where it moves an element of the answer by this many times what the check allows, or more: then the
answer to the values before it is wrong."""
SCALE = 1.5
"""An error of the reference may be this much larger than in the few cases that were measured against fp64. What the
borrowed limits refuse is judged against fp64 after all, so this saves time and decides nothing."""


@dataclass(frozen=True, kw_only=True)
class Flip:
    """Element ``to`` of input ``input`` takes the value of element ``source``. ``changed``: per output the flat
    positions that change (int64) and their new values, as stored.
    """

    input: int
    to: int
    source: int
    changed: tuple[tuple[Array, Array], ...]


@dataclass(frozen=True, kw_only=True)
class Fresh:
    """A case with the declared precision's answer, its limits borrowed from cases with an answer in fp64. It was drawn
    under ``seed``, on parameters drawn under ``state_seed`` (None: under ``seed``, too). Without one, the case has an
    answer in fp64 itself.
    """

    case: Case
    seed: int | None
    state_seed: int | None
    flips: tuple[Flip, ...] = ()

    @property
    def nbytes(self) -> int:
        """Memory held."""
        held = sum(a.nbytes + b.nbytes for flip in self.flips for a, b in flip.changed)
        return (
            held + sum(data.nbytes for data in self.case.inputs) + sum(r.declared.nbytes for r in self.case.references)
        )


@dataclass(frozen=True, kw_only=True)
class Values:
    """What one call is given: a case, flipped or not. ``first_use``: the process has not had exactly these before."""

    fresh: Fresh
    flip: Flip | None = None
    first_use: bool = False

    @property
    def settled(self) -> bool:
        """Whether the answer in fp64 is known, so that nobody has to be asked for it."""
        return self.fresh.seed is None

    @property
    def name(self) -> str:
        if self.flip is None:
            return self.fresh.case.name
        return f"{self.fresh.case.name}, element {self.flip.to} of input {self.flip.input} flipped"

    def element(self) -> tuple[int, int, bytes]:
        """Input, offset in bytes and bytes of the element that the flip writes.

        Raises:
            ValueError: there is no flip.
        """
        if self.flip is None:
            raise ValueError("these values have no flip")
        size = self.fresh.case.specs[self.flip.input].dtype.itemsize
        source = self.flip.source * size
        return (
            self.flip.input,
            self.flip.to * size,
            on_host(self.fresh.case.inputs[self.flip.input][source : source + size]).tobytes(),
        )


FLIPPED_MOST = 8
"""Values of a block that are flipped. Each is verified by itself."""


class Deck:
    """What one process gets: whole draws that it has not had, while there are any, and those that it had longest ago, a
    few of them flipped where that is new.
    """

    def __init__(self, cases: Sequence[Fresh], draw: random.Random) -> None:
        self._draw = draw
        self._unused = list(cases)
        draw.shuffle(self._unused)
        self._used: deque[Fresh] = deque()
        """The one used longest ago first."""
        self._seen: set[tuple[str, int | None]] = set()

    @property
    def unused(self) -> int:
        """Whole draws that the process has not had."""
        return len(self._unused)

    def open(self, count: int) -> None:
        """Let ``count`` of the unused draws be among the known ones."""
        for _ in range(min(count, len(self._unused))):
            self._used.append(self._unused.pop())

    def new(self, count: int) -> list[Values]:
        """``count`` whole draws that the process has not had. Flips are not enough where times are compared: who keeps
        an answer can mend the part that a flip changes.

        Raises:
            ValueError: there are fewer.
        """
        if count > len(self._unused):
            raise ValueError(f"{count} draws asked for, {len(self._unused)} unused")
        dealt = [self._unused.pop() for _ in range(count)]
        self._used.extend(dealt)
        return [self._mark(Values(fresh=fresh)) for fresh in dealt]

    def known(self, count: int, *, flips: bool = True) -> list[Values]:
        """``count`` values for one block: the opened draws in turn, in another order each time, with ``flips`` some
        flipped: values that no memory of whole inputs knows.
        """
        dealt: list[Fresh] = []
        while len(dealt) < count:
            some = [self._used.popleft() for _ in range(min(count - len(dealt), max(1, len(self._used) // 2)))]
            self._used.extend(some)
            dealt += self._draw.sample(some, len(some))
        least = int(count > 1)
        many = self._draw.randint(least, min(count, FLIPPED_MOST)) if flips else 0
        flipped = set(self._draw.sample(range(count), many))
        return [
            self._mark(Values(fresh=fresh, flip=self._flip(fresh) if place in flipped else None))
            for place, fresh in enumerate(dealt)
        ]

    def _flip(self, fresh: Fresh) -> Flip | None:
        """One that the process has not seen, if there is one."""
        unseen = [flip for flip in fresh.flips if self._key(fresh, flip) not in self._seen]
        return self._draw.choice(unseen or fresh.flips) if fresh.flips else None

    def _mark(self, values: Values) -> Values:
        """``values``, marked with whether the process had them; now it has."""
        key = self._key(values.fresh, values.flip)
        first = key not in self._seen
        self._seen.add(key)
        return replace(values, first_use=first)

    @staticmethod
    def _key(fresh: Fresh, flip: Flip | None) -> tuple[str, int | None]:
        return fresh.case.name, None if flip is None else fresh.flips.index(flip)


def borrow(spec: TensorSpec, declared: Array, models: Sequence[Reference]) -> Reference:
    """A reference whose truth is the declared precision's answer, with limits of ``models``: references of the same
    output in other cases.

    What the limits allow around the truth in fp64, they allow here around an answer that is itself off by the
    reference's error, so one more of it is added.
    """
    demand = Demand.BITS if models[0].demand is Demand.BITS else Demand.LIMITS
    if not spec.dtype.floating:
        return Reference(spec=spec, exact=declared, declared=declared, finite=True, demand=demand)
    values = widened(declared, spec.dtype) if spec.dtype in (DType.F16, DType.BF16) else declared
    finite = bool(np.isfinite(values).all())
    kept = values if finite else values[np.isfinite(values)]
    allowed = tolerance(spec.dtype)
    rms = float(np.sqrt(squares(kept) / max(kept.size, 1)))
    return Reference(
        spec=spec,
        exact=values,
        declared=declared,
        finite=finite,
        rmse=SCALE * max(m.rmse for m in models) * (allowed.rmse_multiple + 1) / allowed.rmse_multiple,
        max_error=SCALE * max(m.max_error for m in models) * (allowed.max_multiple + 1) / allowed.max_multiple,
        scale_rms=max(rms, *(m.scale_rms for m in models)),
        scale_max=max(largest(np.abs(kept)), *(m.scale_max for m in models)),
        demand=demand,
    )


def shows(flip: Flip, references: Sequence[Reference]) -> bool:
    """Whether the answer before ``flip`` is wrong after it."""
    for (at, after), reference in zip(flip.changed, references, strict=True):
        dtype = reference.spec.dtype
        if not at.size:
            continue
        if not dtype.floating:
            return True
        moved = np.abs(widened(after, dtype) - widened(reference.declared[at], dtype))
        if float(moved.max()) > SHOWS * (max_limit(reference) + reference.max_error):
            return True
    return False


def right(values: Values, outputs: Sequence[bytearray | Array]) -> bool:
    """Whether ``outputs`` (bytes that can be written) are within the limits for ``values``; those of a flip are changed
    meanwhile, and put back.
    """
    references = values.fresh.case.references
    if values.flip is None:
        return all(within(reference, data) for reference, data in zip(references, outputs, strict=True))
    for (at, after), reference, data in zip(values.flip.changed, references, outputs, strict=True):
        got = elements(data, reference.spec.dtype)
        kept = got[at].copy()
        part = replace(
            reference,
            spec=TensorSpec(shape=(at.size,), dtype=reference.spec.dtype),
            exact=widened(after, reference.spec.dtype) if reference.spec.dtype.floating else after,
            declared=after,
        )
        if at.size and not within(part, flat(kept)):
            return False
        got[at] = reference.declared[at]
        unchanged = within(reference, data)
        got[at] = kept
        if not unchanged:
            return False
    return True
