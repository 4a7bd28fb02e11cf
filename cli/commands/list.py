"""``kernelevolve list``: the searches on a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cli import searches
from cli.phases import PHASES
from cli.server import of_a_server, talk
from protos.search.v1 import search_service_pb2 as pb

if TYPE_CHECKING:
    from cli.client import KernelEvolveClient


@click.command("list")
@click.option("--phase", type=click.Choice(PHASES), help="Only searches in this phase.")
@click.option("--chip", default="", help="Only searches for this chip.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="Searches to show at most.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per search on stdout.")
def command(phase: str | None, chip: str, limit: int, server: str | None, as_json: bool) -> None:
    """List the searches of a server, newest first.

    \b
    Examples:
      kernelevolve list
      kernelevolve list --phase searching --chip cpu-x86_64 --json
    """
    found = talk(server, lambda client: newest(client, phase=phase or "", chip=chip, limit=limit))
    if as_json:
        for search in found:
            click.echo(json.dumps(searches.plain(search)))
    elif found:
        Console().print(searches.table(found))
    else:
        click.echo("no searches")


async def newest(client: KernelEvolveClient, *, phase: str, chip: str, limit: int) -> list[pb.Search]:
    """The newest ``limit`` searches; pages beyond them are not fetched."""
    found: list[pb.Search] = []
    async for search in client.list(phase=phase, chip=chip):
        found.append(search)
        if len(found) == limit:
            break
    return found
