"""``kernelevolve chips``: every chip sheet and whether this machine can search for it; ``check`` tries an adapter."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cli import chip_list
from shared import chips
from shared.chips import ChipSheet, places, state
from shared.errors import UserError


@click.group("chips", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per chip.")
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """List the chips that can be searched for, and what each still needs on this machine.

    Sheets of your own are found in the folders that KERNELEVOLVE_CHIPS names.

    \b
    Example:
      kernelevolve chips
      kernelevolve chips check examples/accelerators/corvid/corvid-v1.toml
    """
    if context.invoked_subcommand is not None:
        return
    found = [(sheet, state.of(sheet)) for sheet in map(chips.load, chips.known())]
    if as_json:
        for sheet, standing in found:
            click.echo(
                json.dumps(
                    {
                        "chip": sheet.id,
                        "title": sheet.title,
                        "state": standing.standing.value,
                        "missing": standing.missing,
                    }
                )
            )
        return
    console = Console()
    table = Table(box=None, header_style="bold")
    for column in chip_list.COLUMNS:
        table.add_column(column, no_wrap=column in ("chip", "state"))
    for row in chip_list.rows(found):
        table.add_row(*row)
    console.print(table)
    for head, what, ids in chip_list.remarks(found):
        console.print(f"\n [bold]{escape(head)}[/bold]: {escape(what)}\n   {ids}", highlight=False)


@command.command("check")
@click.argument("sheet")
@click.option("--only", multiple=True, metavar="NAME", help="Only the requirement of this name; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per requirement.")
def check(sheet: str, *, only: tuple[str, ...], as_json: bool) -> None:
    """Try a vendor's adapter on kernels that its sheet names: SHEET is a file, or the id of a chip.

    Prints a line for each requirement. Exit code 1: at least one is not met.

    \b
    Example:
      kernelevolve chips check corvid-v1.toml
    """
    found = chips.read(Path(sheet)) if sheet.endswith(places.SUFFIX) else chips.load(sheet)
    if not asyncio.run(_tried(found, only, as_json=as_json)):
        sys.exit(1)


async def _tried(sheet: ChipSheet, only: tuple[str, ...], *, as_json: bool) -> bool:
    from evaluator_svc.external.conformance import REQUIREMENTS, conformance  # services are loaded when they are needed

    for name in only:
        if name not in REQUIREMENTS:
            raise UserError(f"is `{name}`", where="--only", hint=f"one of {', '.join(REQUIREMENTS)}")

    kept = True
    async for line in conformance(sheet, only):
        kept = kept and line.kept
        plain = {"requirement": line.requirement, "kept": line.kept, "said": line.said, "mend": line.mend}
        click.echo(json.dumps(plain) if as_json else str(line))
    return kept
