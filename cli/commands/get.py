"""``kernelevolve get``: a search on a server at a glance."""

from __future__ import annotations

import json

import click

from cli import searches
from cli.server import of_a_server, talk


@click.command("get")
@click.argument("search")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(search: str, server: str | None, as_json: bool) -> None:
    """Tell how SEARCH, an id, stands.

    \b
    Example:
      kernelevolve get 3fa94c2e81b07d65
    """
    found = talk(server, lambda client: client.get(search))
    click.echo(json.dumps(searches.plain(found)) if as_json else "\n".join(searches.lines(found)))
