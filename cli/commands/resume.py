"""``kernelevolve resume``: go on with a search that is paused, or whose process died."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from cli import options, rundir, session
from cli.announce import announce
from cli.interruptible import see_through
from cli.live import LiveView
from cli.outcome import Finished
from cli.requirements import require_chip
from cli.server import of_a_server, talk
from deploy.embedded import embedded
from search_svc import service as search_service
from search_svc.service import NO_BUDGET
from shared import ids, wire
from shared.errors import LogError
from shared.events import ModelBudget, SearchFinished, SearchForked
from shared.store import JournalEntry


@click.command("resume")
@click.argument("run")
@options.of_models
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(run: str, model_budget: float, model_tokens: int, server: str | None, as_json: bool) -> None:
    """Go on with the search in RUN, a directory, after a pause, a crash or an interruption; or with RUN, the id of a
    paused search on a server. What was measured is not measured again, and what was answered is not asked again.

    Limits for models count from the search's beginning, and without them stay as they are.

    \b
    Examples:
      kernelevolve resume runs/latest
      kernelevolve resume runs/latest --model-budget 2.50
      kernelevolve resume 3fa94c2e81b07d65 --model-tokens 500000
    """
    begin_ns = time.monotonic_ns()
    model = options.budget_of_models(model_budget, model_tokens)
    if not Path(run).exists() and ids.is_one(run):
        talk(server, lambda client: client.resume(run, model))
        told = {"search_id": run, "resumed": True}
        click.echo(json.dumps(told) if as_json else f"search {run} goes on; `kernelevolve watch {run}` follows it")
        return
    directory = rundir.open_existing(Path(run))
    finished = see_through(directory, finish(directory, model, as_json=as_json, begin_ns=begin_ns))
    sys.exit(announce(finished, as_json=as_json))


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
