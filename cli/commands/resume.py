"""``kernelevolve resume``: go on with a search whose process died."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from cli import rundir, session
from cli.announce import announce
from cli.interruptible import see_through
from cli.live import LiveView
from cli.outcome import Finished
from cli.requirements import require_chip
from deploy.embedded import embedded
from search_svc import service as search_service
from shared import wire
from shared.errors import LogError
from shared.events import SearchFinished, SearchForked
from shared.store import JournalEntry


@click.command("resume")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(run: Path, as_json: bool) -> None:
    """Finish the search in RUN after a crash or an interruption. What was measured is not measured again.

    \b
    Example:
      kernelevolve resume runs/latest
    """
    begin_ns = time.monotonic_ns()
    directory = rundir.open_existing(run)
    finished = see_through(directory, finish(directory, as_json=as_json, begin_ns=begin_ns))
    sys.exit(announce(finished, as_json=as_json))


async def finish(directory: rundir.RunDirectory, *, as_json: bool, begin_ns: int) -> Finished:
    """Replay what the journal holds, show it, and see the search through."""
    manifest = rundir.read_manifest(directory)
    started = manifest.started
    require_chip(started.chip)
    view = LiveView(Console(stderr=True), title=f"resuming {started.operator.name} on {started.chip}", quiet=as_json)
    async with embedded(directory.store_url, started.chip, os.environ, resume=True) as system:
        spec = await session.stored_operator(system.ports.store, started, manifest.operator_path)
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
