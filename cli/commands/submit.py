"""``kernelevolve submit``: start a search on a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli import following, options, rundir
from cli.announce import announce
from cli.options import Options
from cli.server import of_a_server, talk
from cli.submitted import read_operator
from shared import operators
from shared.errors import KernelEvolveError, UserError
from shared.events.values import PRIORITIES

if TYPE_CHECKING:
    from cli.client import KernelEvolveClient, Submitted


@click.command("submit")
@options.of_a_search
@click.option(
    "--priority",
    default=0,
    show_default=True,
    type=click.IntRange(PRIORITIES[0], PRIORITIES[-1]),
    help="Higher is measured first; equals share the pool.",
)
@click.option("--request-id", default="", help="Name of the wish: submitting it again is the same search.")
@click.option("--watch", is_flag=True, help="Follow the search to its end.")
@click.option("--out", type=click.Path(path_type=Path), help="With --watch: write log, report and kernel there.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(
    operator: Path,
    workload: str,
    priority: int,
    request_id: str,
    watch: bool,
    out: Path | None,
    server: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Start a search for OPERATOR on a server: a KernelBench-style file, a definition, or an ATen call.

    Prints the search's id, or with --watch how the search ended.

    \b
    Examples:
      kernelevolve submit examples/operators/softmax.py --evaluations 24 --watch
      kernelevolve submit my_op.py --priority 5 --request-id nightly-42 --json
    """
    if out and not watch:
        raise UserError("needs --watch", where="--out", hint="or bring it later: `kernelevolve watch SEARCH --out DIR`")
    spec = read_operator(operator, workload)
    wanted = options.gather(**asked)
    if len(wanted.chips) > 1:
        raise UserError("a search on a server is for one chip", where="--chip", hint="submit once for each")
    home = rundir.create(out, spec.ref.name) if out else None
    try:
        submitted = talk(server, lambda client: submit(client, spec, wanted, priority=priority, request_id=request_id))
    except KernelEvolveError:
        if home:
            rundir.discard(home)
        raise
    if not watch:
        told = {"search_id": submitted.search_id, "created": submitted.created}
        click.echo(json.dumps(told) if as_json else submitted.search_id)
        return
    click.echo(f"search {submitted.search_id}", err=True)
    finished = following.see_through(server, submitted.search_id, out, as_json=as_json)
    sys.exit(announce(finished, as_json=as_json))


async def submit(
    client: KernelEvolveClient, spec: operators.OperatorSpec, wanted: Options, *, priority: int, request_id: str
) -> Submitted:
    """Ask for what the command line says."""
    return await client.submit(
        spec.ref.name,
        spec.source,
        chip=wanted.chips[0],
        budget=wanted.budget,
        policy=wanted.policy,
        parameters=wanted.parameters,
        seed=wanted.seed,
        threads=wanted.threads,
        baseline=wanted.baseline,
        priority=priority,
        request_id=request_id,
    )
