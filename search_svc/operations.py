"""Dead letters: found on their topics, published again on request, and marked as such in the store.

The mark is made after the publication: a crash between the two leaves a letter that can be redriven twice, which its
unchanged event id makes harmless.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from shared import chips, dead_letters, topics
from shared.bus import Bus
from shared.dead_letters import DeadLetter
from shared.errors import NotFound
from shared.store import Documents

REDRIVEN = "operations.redriven"
"""Collection: letter id -> fingerprint of the letter that was redriven."""


class DeadLetters:
    """The dead letters of a bus. Every call raises ``Unavailable`` while bus or store cannot be reached."""

    def __init__(self, bus: Bus, documents: Documents) -> None:
        self._bus, self._documents = bus, documents

    async def all(self, source_topic: str = "") -> AsyncIterator[DeadLetter]:
        """Every letter of ``source_topic`` (empty: of every topic), in no particular order.

        Raises:
            NotFound: there is no such topic.
        """
        known = sources()
        if source_topic and source_topic not in known:
            raise NotFound(f"no topic `{source_topic}`", hint=f"topics: {', '.join(known)}")
        for topic in [source_topic] if source_topic else known:
            async for delivery in self._bus.history(topics.dead_letters(topic)):
                yield dead_letters.read(delivery)

    async def get(self, letter_id: str) -> DeadLetter:
        """Raises ``NotFound``."""
        topic = letter_id.partition("/")[0].removesuffix(topics.DEAD_LETTER_SUFFIX)
        if topic in sources():
            async for letter in self.all(topic):
                if letter.letter_id == letter_id:
                    return letter
        raise NotFound(f"no dead letter `{letter_id}`", hint="`kernelevolve dlq list` shows them")

    async def redriven(self, letter: DeadLetter) -> bool:
        """Was ``letter`` published again?"""
        mark = await self._documents.get(REDRIVEN, letter.letter_id)
        return mark is not None and mark["fingerprint"] == letter.fingerprint

    async def all_redriven(self) -> frozenset[tuple[str, str]]:
        """Id and fingerprint of every letter that was published again."""
        marks = [(key, str(mark["fingerprint"])) async for key, mark in self._documents.scan(REDRIVEN)]
        return frozenset(marks)

    async def redrive(self, letter_id: str) -> DeadLetter:
        """Publish the record again where it came from, as it was.

        Raises:
            NotFound: there is no such letter.
        """
        letter = await self.get(letter_id)
        await self._bus.publish(letter.topic, letter.original)
        await self._documents.put(REDRIVEN, letter_id, {"fingerprint": letter.fingerprint})
        return letter


def sources() -> tuple[str, ...]:
    """Every topic that records are consumed from."""
    return (*(topic.name for topic in topics.TABLE), *map(topics.evaluation_requests, chips.known()))
