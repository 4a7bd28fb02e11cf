"""``kernelevolve dlq``: records that no service could handle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cli.client import KernelEvolveClient
from cli.server import of_a_server, talk
from protos.operations.v1 import operations_service_pb2 as pb
from shared import timestamps
from shared.errors import UserError

VALUE_BYTES_SHOWN = 256


@click.group("dlq")
def command() -> None:
    """List, show and redrive dead letters: records that no service could handle, kept with the reason.

    \b
    Examples:
      kernelevolve dlq list
      kernelevolve dlq redrive search.facts.v1.dlq/0/17
    """


@command.command("list")
@click.option("--topic", default="", help="Only those that came from this topic.")
@click.option("--all", "redriven", is_flag=True, help="Those that were redriven, too.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(min=1), help="Letters to show at most.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per letter on stdout.")
def list_(topic: str, redriven: bool, limit: int, server: str | None, as_json: bool) -> None:
    """List dead letters, oldest first.

    \b
    Examples:
      kernelevolve dlq list
      kernelevolve dlq list --topic search.facts.v1 --json
    """
    found = talk(server, lambda client: oldest(client, topic=topic, redriven=redriven, limit=limit))
    if as_json:
        for letter in found:
            click.echo(json.dumps(plain(letter)))
    elif found:
        Console().print(table(found))
    else:
        click.echo("no dead letters")


@command.command("show")
@click.argument("letter")
@click.option("--out", type=click.Path(path_type=Path), help="Write the record's value to this file.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; bytes in hexadecimal.")
def show(letter: str, out: Path | None, server: str | None, as_json: bool) -> None:
    """Show LETTER, as named by `kernelevolve dlq list`: why it is dead, and the record.

    \b
    Example:
      kernelevolve dlq show search.facts.v1.dlq/0/17 --out record.bin
    """
    found = talk(server, lambda client: client.dead_letter(letter))
    if out is not None:
        try:
            out.write_bytes(found.value)
        except OSError as error:
            raise UserError(f"cannot be written: {error.strerror}", where=str(out)) from error
    headers = {name: found.headers[name] for name in sorted(found.headers)}
    if as_json:
        record = {"headers": {name: _text(value) for name, value in headers.items()}, "value_hex": found.value.hex()}
        click.echo(json.dumps(plain(found.letter) | record))
        return
    console = Console(highlight=False)
    for name, value in plain(found.letter).items():
        console.print(f"[bold]{name.replace('_', ' ')}[/bold]: {escape(str(value))}")
    for name, value in headers.items():
        console.print(f"[bold]header[/bold] {escape(name)}: {escape(_text(value))}")
    shown, more = found.value[:VALUE_BYTES_SHOWN].hex(" ", -2), len(found.value) > VALUE_BYTES_SHOWN
    console.print(f"[bold]value[/bold]: {shown}{' …' if more else ''}")


@command.command("redrive")
@click.argument("letters", nargs=-1, required=True)
@of_a_server
def redrive(letters: tuple[str, ...], server: str | None) -> None:
    """Publish LETTERS again, unchanged, where they came from: after the reason is gone, e.g. with a newer version.

    What had been handled after all is ignored by its id. One that fails again comes back as a new letter.

    \b
    Example:
      kernelevolve dlq redrive search.facts.v1.dlq/0/17
    """

    async def work(client: KernelEvolveClient) -> None:
        for letter in letters:
            await client.redrive(letter)
            click.echo(f"redriven {letter}")

    talk(server, work)


async def oldest(client: KernelEvolveClient, *, topic: str, redriven: bool, limit: int) -> list[pb.DeadLetter]:
    """The oldest ``limit`` letters; pages beyond them are not fetched."""
    found: list[pb.DeadLetter] = []
    async for letter in client.dead_letters(source_topic=topic, include_redriven=redriven):
        found.append(letter)
        if len(found) == limit:
            break
    return found


def plain(letter: pb.DeadLetter) -> dict[str, Any]:
    """A letter as one JSON-able object."""
    return {
        "letter": letter.letter_id,
        "group": letter.group,
        "error": letter.error,
        "topic": letter.source_topic,
        "partition": letter.source_partition,
        "offset": letter.source_offset,
        "attempts": letter.attempts,
        "first_failed_at": _when(letter.first_failed_at),
        "key": letter.key,
        "value_bytes": letter.value_bytes,
        "redriven": letter.redriven,
    }


def table(letters: list[pb.DeadLetter]) -> Table:
    """Letters for people."""
    made = Table(box=None, header_style="bold")
    made.add_column("letter", no_wrap=True)  # to be copied
    for column in ("group", "failed at", "bytes", "error"):
        made.add_column(column, overflow="fold")
    for letter in letters:
        error = letter.error + (" (redriven)" if letter.redriven else "")
        made.add_row(
            letter.letter_id,
            escape(letter.group),
            _when(letter.first_failed_at)[:19],
            str(letter.value_bytes),
            escape(error),
        )
    return made


def _when(moment: Timestamp) -> str:
    return timestamps.to_text(moment.ToNanoseconds())


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")
