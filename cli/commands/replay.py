"""``kernelevolve replay``: recompute every decision of a recorded search, or continue it another way."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import click

from cli import history
from cli.announce import announce
from cli.interruptible import see_through
from cli.options import entries as parse_entries
from search_svc import replay
from search_svc.policies import REGISTRY
from shared.errors import UserError


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
    from cli import forking  # all four services: verifying needs none

    chosen = policy or past.started.policy
    plan = forking.prepare(past, fork_at, chosen, parse_entries(parameters), seed, out)
    finished = see_through(plan.directory, forking.fork(past, plan, begin_ns=begin_ns))
    sys.exit(announce(finished, as_json=as_json))
