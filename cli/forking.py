"""Continuing a recorded search another way, in a run directory of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from cli import history, rundir, session
from cli.live import LiveView
from cli.outcome import Finished
from cli.requirements import require_chip
from deploy.embedded import embedded
from evaluator_svc import memo
from search_svc import replay
from search_svc import service as search_service
from search_svc.service import SUBMITTER
from shared import envelopes, ids, operators, wire
from shared.clock import SystemClock
from shared.events import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A checked fork, with the run directory made for it."""

    search_id: str
    at_seq: int
    policy: str
    parameters: tuple[Entry, ...]
    seed: int
    spec: operators.OperatorSpec
    directory: rundir.RunDirectory


def prepare(
    past: history.Past, at_seq: int, policy: str, parameters: tuple[Entry, ...], seed: int | None, out: Path | None
) -> Fork:
    """Check everything a person can get wrong, then make the directory."""
    started = past.started
    seed = started.seed if seed is None else seed
    search_id = ids.derive(past.search_id, "fork", at_seq, policy, seed, SystemClock().now_ns())
    replay.fork(past.entries, at_seq=at_seq, search_id=search_id, policy=policy, seed=seed, parameters=parameters)
    require_chip(started.chip)
    name = started.operator.name
    spec = operators.parse(past.blobs[started.operator.source_hash].decode(), name=name)
    directory = rundir.create(out, f"{name}-fork")
    submitted = envelopes.envelope(started, cause_id=started.search_id, source=SUBMITTER, clock=SystemClock())
    rundir.write_manifest(directory, submitted, Path(name), stream=search_id)
    return Fork(
        search_id=search_id,
        at_seq=at_seq,
        policy=policy,
        parameters=parameters,
        seed=seed,
        spec=spec,
        directory=directory,
    )


async def fork(past: history.Past, plan: Fork, *, begin_ns: int) -> Finished:
    """Continue ``past`` as ``plan`` says, in a run directory of its own."""
    started = past.started
    title = f"{plan.spec.ref.name} on {started.chip}: {plan.policy} from entry {plan.at_seq} of {past.search_id}"
    view = LiveView(Console(stderr=True), title=title)
    async with embedded(plan.directory.store_url, started.chip, os.environ) as system:
        for blob in past.blobs.values():
            await system.ports.store.blobs.put(blob)
        await memo.preload(system.ports.store.documents, started, replay.measurements(past.entries))
        with view:
            for entry in past.entries[: plan.at_seq]:
                view.show(wire.unpack(entry.event).event)
            await search_service.fork(
                system.ports,
                past.entries,
                at_seq=plan.at_seq,
                search_id=plan.search_id,
                policy=plan.policy,
                seed=plan.seed,
                parameters=plan.parameters,
            )
            await session.follow(system, plan.search_id, view)
    return await session.conclude(plan.directory, plan.spec, begin_ns=begin_ns)
