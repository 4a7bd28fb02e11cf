"""``kernelevolve chips``: every chip sheet and whether this machine can search for it."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table

from shared import chips


@click.command("chips")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per chip.")
def command(as_json: bool) -> None:
    """List the chips that can be searched for, and what each still needs on this machine.

    \b
    Example:
      kernelevolve chips
    """
    sheets = [chips.load(chip_id) for chip_id in chips.known()]
    if as_json:
        for sheet in sheets:
            missing = chips.missing_tools(sheet)
            state = ("interpreted" if sheet.without else "missing") if missing else "ready"
            click.echo(json.dumps({"chip": sheet.id, "title": sheet.title, "state": state, "missing": missing}))
        return
    table = Table(box=None, header_style="bold")
    for column in ("chip", "title", "languages", "state"):
        table.add_column(column)
    for sheet in sheets:
        missing = chips.missing_tools(sheet)
        needs = "; ".join(f"needs {tool}: {how}" for tool, how in missing.items())
        state = "; ".join(part for part in (sheet.without if missing else "", needs) if part) or "ready"
        table.add_row(sheet.id, sheet.title, ", ".join(sheet.languages), state)
    Console().print(table)
