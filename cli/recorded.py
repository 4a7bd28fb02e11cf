"""The recorded search that a person names: a run directory, an exported file, or an id on a server."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli import history
from cli.server import talk
from shared import ids
from shared.errors import LogError

if TYPE_CHECKING:
    from cli.client import Exported, KernelEvolveClient

SERVER_SOURCES = ("journal", "bus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A past and where it was read: ``file``, ``journal`` or ``bus``; ``exported`` when a server was asked."""

    past: history.Past
    source: str
    exported: Exported | None = None


def find(name: str, source: str | None, server: str | None) -> Recorded:
    """The search ``name``: a path, or an id with ``source`` ``journal``, ``bus`` or a file that must hold it.

    Without ``source``, an id of which there is no path is read from the server's journal.

    Raises:
        LogError: unreadable, or the file holds another search.
        NotFound: the server knows no such search.
    """
    path = Path(name)
    if source is None and (path.exists() or not ids.is_one(name)):
        return Recorded(past=asyncio.run(history.open_past(path)), source="file")
    if source is None or source in SERVER_SOURCES:
        return _from_server(name, source or "journal", server)
    past = asyncio.run(history.open_past(Path(source)))
    if past.search_id != name:
        raise LogError(f"holds search {past.search_id}, not {name}", where=source)
    return Recorded(past=past, source="file")


def _from_server(search_id: str, source: str, server: str | None) -> Recorded:
    async def export(client: KernelEvolveClient) -> Recorded:
        with tempfile.TemporaryDirectory(prefix="kernelevolve-") as scratch:
            path = Path(scratch) / f"{search_id}.kelog"
            exported = await client.export_log(search_id, path, source=source)
            return Recorded(past=await history.open_past(path), source=source, exported=exported)

    return talk(server, export)
