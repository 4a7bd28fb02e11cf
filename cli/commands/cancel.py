"""``kernelevolve cancel``: end a search on a server."""

from __future__ import annotations

import click

from cli.server import of_a_server, talk


@click.command("cancel")
@click.argument("search")
@click.option("--reason", default="", help="Kept in the search's log.")
@of_a_server
def command(search: str, reason: str, server: str | None) -> None:
    """End SEARCH, an id, now: results that are still to come are ignored, and its outcome is "cancelled".

    Cancelling a search that has ended changes nothing.

    \b
    Example:
      kernelevolve cancel 3fa94c2e81b07d65 --reason "wrong shapes"
    """
    talk(server, lambda client: client.cancel(search, reason))
    click.echo(f"asked search {search} to end")
