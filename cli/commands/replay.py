"""``kernelevolve replay``: recompute every decision of a recorded search, or continue it another way."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from cli import history, rundir, session
from cli.announce import announce
from cli.commands.optimize import entries as parse_entries
from cli.interruptible import see_through
from cli.live import LiveView
from deploy.embedded import embedded
from evaluator_svc import memo
from search_svc import replay
from search_svc import service as search_service
from search_svc.policies import REGISTRY
from search_svc.service import SUBMITTER
from shared import envelopes, ids, operators
from shared.clock import SystemClock
from shared.errors import UserError
from shared.events import Entry


@click.command("replay")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--fork-at", type=int, help="Keep the first N entries of the log, then let --policy decide.")
@click.option("--policy", help=f"Policy of the fork: {', '.join(REGISTRY)}.")
@click.option("--policy-parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Parameter of the policy.")
@click.option("--seed", type=int, help="Seed of the fork; default the recorded one.")
@click.option("--out", type=click.Path(path_type=Path), help="Run directory of the fork.")
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(
    run: Path,
    fork_at: int | None,
    policy: str | None,
    parameters: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Verify RUN, a run directory or a .kelog file: recompute every decision and compare it with the recorded one.

    With --fork-at the search goes on from that entry under another policy; recorded measurements answer as long as the
    candidates are the same.

    \b
    Examples:
      kernelevolve replay runs/latest
      kernelevolve replay runs/latest --fork-at 12 --policy mcts
    """
    begin_ns = time.monotonic_ns()
    past = asyncio.run(history.open_past(run))
    report = replay.verify(past.entries, past.damaged)
    if fork_at is None:
        if policy or parameters or seed is not None or out:
            raise UserError("--policy, --policy-parameter, --seed and --out need --fork-at", where="replay")
        summary = {"identical": True, "search_id": past.search_id, "entries": report.entries}
        summary["decisions"] = report.decisions
        text = f"identical: {report.entries} entries, {report.decisions} decisions recomputed (search {past.search_id})"
        click.echo(json.dumps(summary) if as_json else text)
        return
    chosen = policy or past.started.policy
    plan = prepare(past, fork_at, chosen, parse_entries(parameters), seed, out)
    finished = see_through(plan.directory, fork(past, plan, begin_ns=begin_ns))
    sys.exit(announce(finished, as_json=as_json))


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
    session.require_chip(started.chip)
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


async def fork(past: history.Past, plan: Fork, *, begin_ns: int) -> session.Finished:
    """Continue ``past`` as ``plan`` says, in a run directory of its own."""
    started = past.started
    title = f"{plan.spec.ref.name} on {started.chip}: {plan.policy} from entry {plan.at_seq} of {past.search_id}"
    view = LiveView(Console(stderr=True), title=title)
    async with embedded(plan.directory.store_url, started.chip, os.environ) as system:
        for blob in past.blobs.values():
            await system.ports.store.blobs.put(blob)
        await memo.preload(system.ports.store.documents, started, replay.measurements(past.entries))
        with view:
            view.show(started)
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
