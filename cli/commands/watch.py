"""``kernelevolve watch``: follow a search on a server to its end."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli import following
from cli.announce import announce
from cli.server import of_a_server


@click.command("watch")
@click.argument("search")
@click.option("--out", type=click.Path(path_type=Path), help="Write log, report and kernel there at the end.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(search: str, out: Path | None, server: str | None, as_json: bool) -> None:
    """Show what happens in SEARCH, an id, from its beginning to its end. Ctrl-C stops the watching, not the search.

    \b
    Examples:
      kernelevolve watch 3fa94c2e81b07d65
      kernelevolve watch 3fa94c2e81b07d65 --out runs/softmax
    """
    sys.exit(announce(following.see_through(server, search, out, as_json=as_json), as_json=as_json))
