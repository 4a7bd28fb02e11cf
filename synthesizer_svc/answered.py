"""What an expansion was answered with, in the order in which it was told: a list of batches that only grows.

A batch is written before it is published. Batches are numbered without holes, and of several replicas that write the
next one exactly one does: that is the fence. The other takes the standing batch as if it were its own and gives only
what that leaves open, so that no index is ever told twice in two ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared import wire
from shared.events import Envelope, ExpansionFailed, ExpansionRequested
from shared.store import Documents

ANSWERED = "synthesizer.expansions"
"""Collection: expansion id, and of later batches ``/`` and their number, -> the envelopes of the batch."""


class Answered:
    """The batches of one expansion. ``told`` are the envelopes of all that were read or written here."""

    def __init__(self, documents: Documents, request: ExpansionRequested) -> None:
        self._documents, self._request = documents, request
        self._batches = 0
        self.told: list[Envelope] = []

    async def read(self) -> None:
        """Read what was told before."""
        while stored := await self._documents.get(ANSWERED, self._key()):
            self._take(_envelopes(stored))

    async def add(self, answers: Sequence[Envelope]) -> tuple[tuple[Envelope, ...], tuple[Envelope, ...]]:
        """Write those of ``answers`` that nobody told; returns what is to be published now, in order, and which of it
        was written here.
        """
        publish: tuple[Envelope, ...] = ()
        while own := tuple(answer for answer in answers if not self._covers(answer)):
            batch: dict[str, object] = {"envelopes": [wire.to_json(answer) for answer in own]}
            standing = await self._documents.create(ANSWERED, self._key(), batch)
            if standing is None or standing == batch:
                self._take(own)
                return publish + own, own
            others = _envelopes(standing)
            self._take(others)
            publish += others
        return publish, ()

    @property
    def complete(self) -> bool:
        """Whether every index was told, or none will be."""
        return self._failed or (bool(self.told) and self.indices >= set(range(self._request.count)))

    @property
    def indices(self) -> set[int]:
        """Those that were told."""
        return {_index(one) for one in self.told if not isinstance(one.event, ExpansionFailed)}

    @property
    def _failed(self) -> bool:
        return any(isinstance(one.event, ExpansionFailed) for one in self.told)

    def _covers(self, answer: Envelope) -> bool:
        if isinstance(answer.event, ExpansionFailed):
            return self.complete
        return self._failed or _index(answer) in self.indices

    def _take(self, batch: Sequence[Envelope]) -> None:
        self.told += batch
        self._batches += 1

    def _key(self) -> str:
        expansion_id = self._request.expansion_id
        return f"{expansion_id}/{self._batches}" if self._batches else expansion_id


def _index(answer: Envelope) -> int:
    return int(getattr(answer.event, "index", 0))


def _envelopes(stored: Mapping[str, object]) -> tuple[Envelope, ...]:
    answers = stored["envelopes"]
    assert isinstance(answers, list)
    return tuple(wire.from_json(answer) for answer in answers)
