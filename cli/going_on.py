"""Going on with a search in its run directory: replaying what its journal holds, and seeing it through."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.console import Console

from cli import rundir, session
from cli.live import LiveView
from cli.outcome import Finished
from cli.requirements import require_chip
from deploy.embedded import embedded
from search_svc import service as search_service
from search_svc.service import NO_BUDGET
from shared import wire
from shared.errors import LogError
from shared.events import ModelBudget, SearchFinished, SearchForked
from shared.store import JournalEntry


async def finish(
    directory: rundir.RunDirectory, model: ModelBudget = NO_BUDGET, *, as_json: bool, begin_ns: int
) -> Finished:
    """Replay what the journal holds, show it, and see the search through; it may spend ``model``."""
    manifest = rundir.read_manifest(directory)
    started = manifest.started
    require_chip(started.chip)
    view = LiveView(Console(stderr=True), title=f"resuming {started.operator.name} on {started.chip}", quiet=as_json)
    async with embedded(directory.store_url, started.chip, os.environ, resume=True, resumed_with=model) as system:
        spec = await session.stored_operator(system.ports.store, started, manifest.operator_path)
        await session.keep(system.ports.store, *manifest.schedules)
        entries = [entry async for entry in system.ports.store.journal.read(manifest.stream)]
        if manifest.stream != started.search_id and not begun(entries, manifest.stream):
            raise LogError("is a fork that was cut off before it began", where=str(directory.path), hint="fork again")
        with view:
            done = show_past(view, entries)
            if not done:
                if not entries:
                    view.note(f"admitting {spec.ref.name}: reference, mutants, baselines")
                    await system.admit(started.operator, threads=started.threads)
                    rundir.point_latest_at(directory)
                    await search_service.submit(system.ports, started)
                await session.follow(system, manifest.stream, view)
    return await session.conclude(directory, spec, begin_ns=begin_ns)


def begun(entries: Sequence[JournalEntry], fork: str) -> bool:
    """Whether the journal of ``fork`` goes beyond the history it copied."""
    facts = (wire.unpack(entry.event).event for entry in entries)
    return any(isinstance(fact, SearchForked) and fact.search_id == fork for fact in facts)


def show_past(view: LiveView, entries: Sequence[JournalEntry]) -> bool:
    """Show what the journal holds; whether the search had ended already."""
    done = False
    for entry in entries:
        for record in (entry.event, *entry.commands):
            event = wire.unpack(record).event
            view.show(event)
            done = done or isinstance(event, SearchFinished)
    return done
