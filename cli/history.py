"""Reading what a search left: its journal, tree and blobs, from a run directory or an exported log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cli import rundir
from search_svc import export as export_of
from search_svc import replay
from search_svc.tree import Tree
from shared import kelog
from shared.adapters import open_store
from shared.errors import LogError
from shared.events import SearchStarted
from shared.store import JournalEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A recorded search. ``damaged`` maps positions whose container found them altered to what is wrong there."""

    search_id: str
    entries: tuple[JournalEntry, ...]
    blobs: Mapping[str, bytes]
    damaged: Mapping[int, str]

    @property
    def tree(self) -> Tree:
        """The tree as recorded, without recomputing decisions.

        Raises:
            LogError: the log is empty.
            ReplayDivergence: an entry cannot be read or was altered.
        """
        tree = replay.rebuild(self.entries)
        if tree is None:
            raise LogError("holds no entries", where=self.search_id)
        return tree

    @property
    def started(self) -> SearchStarted:
        return self.tree.search


async def open_past(path: Path) -> Past:
    """The recorded search at ``path``: a run directory, also one written from a server's log, or a ``.kelog`` file.

    Raises:
        LogError: neither, or corrupt beyond reading.
    """
    run = rundir.RunDirectory(path=path)
    if path.is_dir() and (run.manifest.is_file() or not run.log.is_file()):
        return await load(rundir.open_existing(path))
    log = kelog.read(run.log if path.is_dir() else path)
    damaged = {line - 2: f"line {line} was altered" for line in log.altered}
    return Past(search_id=log.stream, entries=log.entries, blobs=log.blobs, damaged=damaged)


async def load(run: rundir.RunDirectory) -> Past:
    """The search of a run directory, from its store.

    Raises:
        LogError: the store is missing, corrupt or holds no search.
        ReplayDivergence: an entry was altered after it was written; carries its position.
    """
    manifest = rundir.read_manifest(run)
    if not run.database.is_file():
        raise LogError("has no search.db", where=str(run.path))
    async with open_store(run.store_url) as store:
        entries = tuple([entry async for entry in store.journal.read(manifest.stream)])
        blobs = await export_of.blobs_named(store.blobs, entries)
    return Past(search_id=manifest.stream, entries=entries, blobs=blobs, damaged={})


def export(path: Path, past: Past) -> None:
    """Write ``past`` as one self-contained file."""
    kelog.write(path, past.entries, past.blobs, stream=past.search_id)
