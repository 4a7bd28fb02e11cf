"""Running one search in this process: submit or resume, follow it, and leave a complete run directory behind."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli import artefact, history, outcome, rundir
from cli.live import LiveView
from cli.report import render, verdict_times
from cli.rundir import RunDirectory
from deploy.embedded import Embedded, embedded
from search_svc import service as search_service
from search_svc.projection import winner
from search_svc.tree import Tree
from shared import operators
from shared.errors import OperatorError, UserError
from shared.events import SearchStarted
from shared.operators import OperatorSpec
from shared.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a session ends with: the final object and where its pieces are."""

    tree: Tree
    result: dict[str, Any]
    artefact: Path | None


async def search(
    run: RunDirectory, spec: OperatorSpec, started: SearchStarted, view: LiveView, *, begin_ns: int
) -> Finished:
    """Submit ``started`` and see it through.

    Raises:
        UserError: the operator is refused, before anything is searched; the run directory is gone then.
    """
    begun = False
    try:
        async with embedded(run.store_url, started.chip, os.environ) as system:
            await system.ports.store.blobs.put(spec.source.encode())
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


async def follow(system: Embedded, search_id: str, view: LiveView) -> None:
    """Show the search's facts until it has finished."""
    async for event in system.watch(search_id):
        view.show(event)


async def conclude(run: RunDirectory, spec: OperatorSpec, *, begin_ns: int) -> Finished:
    """Write what a finished search leaves: log, artefact, report and result."""
    past = await history.load(run)
    tree = past.tree
    history.export(run.log, past)
    best = winner(tree)
    shipped = artefact.export_winner(run.kernel, spec, best, past.blobs, tree.search) if best else None
    total_ns = time.monotonic_ns() - begin_ns
    result = outcome.final_object(tree, run_dir=run.path, artefact=shipped, total_ns=total_ns)
    rundir.write_whole(run.report, render(tree, past.blobs, result, verdict_times(past.entries)))
    rundir.write_whole(run.result, json.dumps(result, indent=1))
    return Finished(tree=tree, result=result, artefact=shipped)


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
