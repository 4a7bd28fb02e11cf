"""``kernelevolve replay``: recompute every decision of a recorded search, or continue it another way."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from cli import recorded
from cli.announce import announce
from cli.interruptible import see_through
from cli.options import entries as parse_entries
from cli.recorded import Recorded
from cli.server import of_a_server
from search_svc import replay
from search_svc.policies import REGISTRY
from shared.errors import UserError


@click.command("replay")
@click.argument("run")
@click.option("--from", "source", metavar="journal|bus|FILE", help="Where the log of a search id comes from.")
@click.option("--fork-at", type=int, help="Keep the first N entries of the log, then let --policy decide.")
@click.option("--policy", help=f"Policy of the fork: {', '.join(REGISTRY)}.")
@click.option("--policy-parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Parameter of the policy.")
@click.option("--seed", type=int, help="Seed of the fork; default the recorded one.")
@click.option("--out", type=click.Path(path_type=Path), help="Run directory of the fork.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(
    run: str,
    source: str | None,
    fork_at: int | None,
    policy: str | None,
    parameters: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    server: str | None,
    as_json: bool,
) -> None:
    """Verify RUN: recompute every decision and compare it with the recorded one.

    RUN is a run directory, a .kelog file, or the id of a search: of a server's journal, of the facts that its bus still
    holds (--from bus), or of an exported file (--from FILE).

    With --fork-at the search goes on from that entry under another policy; recorded measurements answer as long as the
    candidates are the same.

    \b
    Examples:
      kernelevolve replay runs/latest
      kernelevolve replay runs/latest --fork-at 12 --policy mcts
      kernelevolve replay 3fa94c2e81b07d65 --from bus
    """
    begin_ns = time.monotonic_ns()
    found = recorded.find(run, source, server)
    past = found.past
    report = replay.verify(past.entries, past.damaged)
    if fork_at is None:
        if policy or parameters or seed is not None or out:
            raise UserError("--policy, --policy-parameter, --seed and --out need --fork-at", where="replay")
        click.echo(json.dumps(summary(found, report)) if as_json else in_words(found, report))
        return
    from cli import forking  # all four services: verifying needs none

    chosen = policy or past.started.policy
    plan = forking.prepare(past, fork_at, chosen, parse_entries(parameters), seed, out)
    finished = see_through(plan.directory, forking.fork(past, plan, begin_ns=begin_ns))
    sys.exit(announce(finished, as_json=as_json))


def summary(found: Recorded, report: replay.Report) -> dict[str, Any]:
    """The final object of a verification."""
    told: dict[str, Any] = {"identical": True, "search_id": found.past.search_id, "entries": report.entries}
    told["decisions"] = report.decisions
    told["source"] = found.source
    if found.exported:
        told["entries_from_journal"] = found.exported.entries_from_journal
    return told


def in_words(found: Recorded, report: replay.Report) -> str:
    """The same for a person."""
    text = f"identical: {report.entries} entries, {report.decisions} decisions recomputed"
    text += f" (search {found.past.search_id})"
    if found.source == "bus" and found.exported and found.exported.entries_from_journal:
        text += f"; {found.exported.entries_from_journal} entries that the bus no longer holds came from the journal"
    return text
