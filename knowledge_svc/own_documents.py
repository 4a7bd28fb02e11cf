"""Documents of the users' own, kept in the store: every replica of the service sees the same ones.

A change is written first and marked afterwards, so that whoever saw a mark before reading has read every change made
before it; a mark never comes twice. Asking for the mark is one read of one small document.
"""

from __future__ import annotations

from shared import ids
from shared.clock import Clock
from shared.store import Documents

DOCUMENTS = "knowledge.documents"
MARKS = "knowledge.marks"
_MARK = "documents"


class OwnDocuments:
    """The texts by document id. Every call raises ``Unavailable`` while the store cannot be reached."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents, self._clock = documents, clock

    async def mark(self) -> str:
        """Changes whenever a document does, whoever changes it."""
        found = await self._documents.get(MARKS, _MARK)
        return str(found["mark"]) if found else ""

    async def texts(self) -> dict[str, str]:
        """All of them, in order of id."""
        return {key: str(value["text"]) async for key, value in self._documents.scan(DOCUMENTS)}

    async def put(self, document_id: str, text: str) -> bool:
        """Add or replace; made again, it has the effect once. True when there was one already."""
        before = await self._documents.get(DOCUMENTS, document_id)
        await self._documents.put(DOCUMENTS, document_id, {"text": text})
        await self._note(document_id, text)
        return before is not None

    async def delete(self, document_id: str) -> bool:
        """False when there was none."""
        before = await self._documents.get(DOCUMENTS, document_id)
        await self._documents.delete(DOCUMENTS, document_id)
        await self._note(document_id, "")
        return before is not None

    async def _note(self, document_id: str, text: str) -> None:
        mark = ids.derive(await self.mark(), document_id, text, self._clock.now_ns())
        await self._documents.put(MARKS, _MARK, {"mark": mark})
