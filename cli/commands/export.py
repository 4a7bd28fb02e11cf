"""``kernelevolve export``: what models were asked and answered, as data to train on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from cli import recorded, rundir, trajectories
from cli.server import of_a_server
from shared.errors import UserError


@click.command("export")
@click.argument("run")
@click.option("--sft", type=click.Path(path_type=Path), help="Conversations that led to kernels which passed.")
@click.option(
    "--preferences", type=click.Path(path_type=Path), help="Pairs of answers to one question, the better one first."
)
@of_a_server
def command(run: str, sft: Path | None, preferences: Path | None, server: str | None) -> None:
    """Write trajectories of RUN, a directory, an exported log or the id of a search on a server, as JSON lines.

    Better is what was measured: intervals that do not touch, or a kernel against one that failed. Each row carries its
    evidence.

    \b
    Examples:
      kernelevolve export runs/latest --sft answers.jsonl
      kernelevolve export runs/latest --sft answers.jsonl --preferences pairs.jsonl
    """
    if not sft and not preferences:
        raise UserError("nothing to write", where="export", hint="give --sft FILE, --preferences FILE, or both")
    if sft and preferences and sft.resolve() == preferences.resolve():
        raise UserError("is named twice: pairs would replace the answers", where=str(sft), hint="name two files")
    past = recorded.find(run, None, server).past
    tree = past.tree
    made = (
        (sft, trajectories.supervised, "answers"),
        (preferences, trajectories.preferences, "pairs"),
    )
    for path, rows, what in made:
        if path is not None:
            count = write(path, rows(tree, past.entries, past.blobs))
            click.echo(f"{count} {what} in {path}")


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write ``rows`` to ``path``, one a line, and return how many there are.

    Raises:
        UserError: it cannot be written.
    """
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    try:
        rundir.write_whole(path, "".join(lines))
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(path)) from error
    return len(lines)
