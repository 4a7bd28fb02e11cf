"""Watching a search on a server to its end, and bringing home what it leaves."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cli import history, outcome, rundir
from cli.interrupted import Detached
from cli.live import LiveView
from cli.outcome import Finished
from cli.phases import PAUSED
from cli.rundir import RunDirectory
from cli.server import talk
from shared import operators
from shared.patience import patiently

if TYPE_CHECKING:
    from cli.client import KernelEvolveClient


def see_through(server: str | None, search_id: str, out: Path | None, *, as_json: bool) -> Finished:
    """Watch to the end; with ``out``, write log, report and kernel there.

    Raises:
        NotFound: the server knows no such search.
        UserError: ``out`` is not empty or cannot be written.
        Detached: interrupted; the search goes on.
    """

    async def work(client: KernelEvolveClient) -> Finished:
        search = await client.get(search_id)
        run = rundir.create(out, search.operator_name) if out else None
        title = f"{search.operator_name} on {search.chip}: {search.policy}, {search.budget_evaluations} evaluations"
        view = LiveView(Console(stderr=True), title=title, quiet=as_json and not sys.stderr.isatty())
        with view:
            await follow(client, search_id, view)
        return await bring_home(client, search_id, run)

    try:
        return talk(server, work)
    except KeyboardInterrupt:
        raise Detached(search_id, signal.SIGINT) from None


async def follow(client: KernelEvolveClient, search_id: str, view: LiveView) -> None:
    """Show what happened in the search so far, and then what happens, until it has finished or waits to be resumed."""
    steps = client.watch(search_id)
    try:
        async for step in steps:
            for envelope in (step.fact, *step.decisions):
                view.show(envelope.event)
            # An old pause is followed by how the search went on.
            if view.progress.paused and (await client.get(search_id)).phase == PAUSED:
                return
    finally:
        await steps.aclose()


async def bring_home(client: KernelEvolveClient, search_id: str, run: RunDirectory | None) -> Finished:
    """What the finished search came to, from its exported log; everything it leaves in ``run``, if given."""
    if run is None:
        with tempfile.TemporaryDirectory(prefix="kernelevolve-") as scratch:
            tree = (await _exported(client, search_id, Path(scratch) / "search.kelog")).tree
        total_ns = tree.now_ns - tree.search.at_ns
        result = outcome.final_object(tree, run_dir=None, artefact=None, total_ns=total_ns)
        return Finished(tree=tree, result=result, artefact=None)
    from cli import conclusion  # reports and artefacts: following alone needs none

    past = await _exported(client, search_id, run.log)
    started = past.started
    source = past.blobs[started.operator.source_hash].decode()
    spec = operators.parse(source, name=started.operator.name, where=str(run.log))
    total_ns = past.tree.now_ns - started.at_ns
    return await asyncio.to_thread(conclusion.leave, run, past, spec, total_ns=total_ns)


async def _exported(client: KernelEvolveClient, search_id: str, path: Path) -> history.Past:
    await patiently(lambda: client.export_log(search_id, path), "bring the log home")
    return await history.open_past(path)
