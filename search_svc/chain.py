"""The digest chain of a journal: each entry vouches for all before it (pure).

``digest = sha256(previous digest, event, commands)``, each part preceded by its length. Altering a stored measurement
that changes no later decision would otherwise go unnoticed by recomputing decisions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from shared.store import JournalEntry

LENGTH_BYTES = 8


def digest(previous: str, event: bytes, commands: Sequence[bytes]) -> str:
    """SHA-256 (64 hex digits) over the digest of the entry before, empty for the first, and this entry's bytes."""
    total = hashlib.sha256()
    for part in (previous.encode(), event, *commands):
        total.update(len(part).to_bytes(LENGTH_BYTES, "big"))
        total.update(part)
    return total.hexdigest()


def link(previous: str, seq: int, event_id: str, event: bytes, commands: tuple[bytes, ...]) -> JournalEntry:
    """The next entry of a stream whose last digest is ``previous``."""
    mark = digest(previous, event, commands)
    return JournalEntry(seq=seq, event_id=event_id, event=event, commands=commands, digest=mark)


def holds(previous: str, entry: JournalEntry) -> bool:
    """Whether ``entry`` still is what was written after the entry with digest ``previous``."""
    return entry.digest == digest(previous, entry.event, entry.commands)
