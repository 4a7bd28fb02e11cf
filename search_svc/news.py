"""Who waits for news of a search in this process is woken by its owner, when that is this process too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class News:
    """Wakes watchers. Only a hint: the owner may be another process, so every wait has an end of its own."""

    def __init__(self) -> None:
        self._watchers: dict[str, list[asyncio.Event]] = {}

    def tell(self, search_id: str) -> None:
        """The search has a new journal entry."""
        for event in self._watchers.get(search_id, ()):
            event.set()

    @contextmanager
    def of(self, search_id: str) -> Iterator[Watcher]:
        """Listen for the length of the block."""
        event = asyncio.Event()
        self._watchers.setdefault(search_id, []).append(event)
        try:
            yield Watcher(event)
        finally:
            self._watchers[search_id].remove(event)
            if not self._watchers[search_id]:
                del self._watchers[search_id]


class Watcher:
    """One who listens. News between two waits are not missed."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    async def wait(self, at_most_s: float) -> None:
        """Until there is news, or ``at_most_s`` have passed."""
        try:
            await asyncio.wait_for(self._event.wait(), at_most_s)
        except TimeoutError:
            return
        self._event.clear()
