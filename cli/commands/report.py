"""``kernelevolve report``: write the HTML report of a run again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click

from cli import history, outcome, rundir
from cli.report import render, verdict_times


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="File to write; default report.html beside the run.")
def command(run: Path, out: Path | None) -> None:
    """Write the self-contained HTML report of RUN, a run directory or a .kelog file.

    \b
    Example:
      kernelevolve report runs/latest --out softmax.html
    """
    past = asyncio.run(history.open_past(run))
    tree = past.tree
    directory = rundir.RunDirectory(path=run if run.is_dir() else run.parent)
    if run.is_dir() and directory.result.is_file():
        result = json.loads(directory.result.read_text(encoding="utf-8"))
    else:
        result = outcome.final_object(
            tree, run_dir=directory.path, artefact=None, total_ns=tree.now_ns - tree.search.at_ns
        )
    target = out or (directory.report if run.is_dir() else run.with_suffix(".html"))
    rundir.write_whole(target, render(tree, past.blobs, result, verdict_times(past.entries)))
    click.echo(str(target))
