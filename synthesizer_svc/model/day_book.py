"""The accounts of days where every search has a store of its own: one store beside them, opened when it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

from shared.adapters import open_store
from shared.store import Documents


class DayBook:
    """The documents of the store at ``url``; see ``ledger.Entries``. Whoever makes it closes it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._documents: Documents | None = None
        self._opening, self._exits = asyncio.Lock(), AsyncExitStack()

    async def create(self, collection: str, key: str, value: Mapping[str, object]) -> dict[str, object] | None:
        """See ``shared.store.Documents``; raises ``UserError`` when the store cannot be opened."""
        return await (await self._opened()).create(collection, key, value)

    async def get(self, collection: str, key: str) -> dict[str, object] | None:
        """See ``shared.store.Documents``; raises ``UserError`` when the store cannot be opened."""
        return await (await self._opened()).get(collection, key)

    async def put(self, collection: str, key: str, value: Mapping[str, object]) -> None:
        """See ``shared.store.Documents``; raises ``UserError`` when the store cannot be opened."""
        await (await self._opened()).put(collection, key, value)

    async def scan(
        self, collection: str, prefix: str = "", after: str = ""
    ) -> AsyncIterator[tuple[str, dict[str, object]]]:
        """See ``shared.store.Documents``; raises ``UserError`` when the store cannot be opened."""
        async for found in (await self._opened()).scan(collection, prefix, after):
            yield found

    async def close(self) -> None:
        await self._exits.aclose()

    async def _opened(self) -> Documents:
        async with self._opening:
            if self._documents is None:
                self._documents = (await self._exits.enter_async_context(open_store(self._url))).documents
            return self._documents
