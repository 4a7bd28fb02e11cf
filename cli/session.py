"""Running one search in this process: submit or resume, follow it, and leave a complete run directory behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

from cli import conclusion, history, rundir
from cli.live import LiveView
from cli.outcome import Finished
from cli.rundir import RunDirectory
from deploy.embedded import Embedded, embedded
from search_svc import service as search_service
from shared import operators
from shared.errors import OperatorError, UserError
from shared.events import SearchStarted
from shared.operators import OperatorSpec
from shared.store import Store


async def search(
    run: RunDirectory,
    spec: OperatorSpec,
    started: SearchStarted,
    view: LiveView,
    *,
    begin_ns: int,
    schedules: tuple[str, ...] = (),
) -> Finished:
    """Submit ``started`` and see it through; ``schedules`` are the texts that its priors name.

    Raises:
        UserError: the operator is refused, before anything is searched; the run directory is gone then.
    """
    begun = False
    try:
        async with embedded(run.store_url, started.chip, os.environ) as system:
            await keep(system.ports.store, spec.source, *schedules)
            view.note(f"admitting {spec.ref.name}: reference, mutants, baselines")
            await system.admit(started.operator, threads=started.threads)
            begun = True
            rundir.point_latest_at(run)
            await search_service.submit(system.ports, started)
            await follow(system, started.search_id, view)
    except UserError:
        if not begun:
            rundir.discard(run)
        raise
    return await conclude(run, spec, begin_ns=begin_ns)


async def keep(store: Store, *texts: str) -> None:
    """Put ``texts`` where events name them by their hash."""
    for text in texts:
        await store.blobs.put(text.encode())


async def follow(system: Embedded, search_id: str, view: LiveView) -> None:
    """Show the search's facts until it has finished."""
    async for event in system.watch(search_id):
        view.show(event)


async def conclude(run: RunDirectory, spec: OperatorSpec, *, begin_ns: int) -> Finished:
    """Write what a finished search leaves: log, artefact, report and result."""
    past = await history.load(run)
    return conclusion.leave(run, past, spec, total_ns=time.monotonic_ns() - begin_ns)


async def stored_operator(store: Store, started: SearchStarted, operator_path: Path) -> OperatorSpec:
    """The operator a run was made for: from the run's own store, so that an edited file changes nothing.

    Raises:
        OperatorError: the process died before storing it, and the file is gone or has changed since.
    """
    try:
        source = (await store.blobs.get(started.operator.source_hash)).decode()
    except KeyError:
        spec = operators.load(operator_path)
        if spec.ref.source_hash != started.operator.source_hash:
            raise OperatorError("has changed since the search was submitted", where=str(operator_path)) from None
        await store.blobs.put(spec.source.encode())
        return spec
    return operators.parse(source, name=started.operator.name, where=str(operator_path))
