"""``kernelevolve resume``: go on with a search that is paused, or whose process died."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from cli import campaign, chip_by_chip, options, rundir
from cli.announce import announce
from cli.going_on import finish
from cli.interruptible import see_through
from cli.server import of_a_server, talk
from shared import ids


@click.command("resume")
@click.argument("run")
@options.of_models
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(run: str, model_budget: float, model_tokens: int, server: str | None, as_json: bool) -> None:
    """Go on with the search in RUN, a directory, after a pause, a crash or an interruption; or with RUN, the id of a
    paused search on a server. What was measured is not measured again, and what was answered is not asked again. With
    the directory of searches for several chips, it goes on with each that has not ended.

    Limits for models count from the search's beginning, and without them stay as they are.

    \b
    Examples:
      kernelevolve resume runs/latest
      kernelevolve resume runs/latest --model-budget 2.50
      kernelevolve resume 3fa94c2e81b07d65 --model-tokens 500000
    """
    begin_ns = time.monotonic_ns()
    model = options.budget_of_models(model_budget, model_tokens)
    if not Path(run).exists() and ids.is_one(run):
        talk(server, lambda client: client.resume(run, model))
        told = {"search_id": run, "resumed": True}
        click.echo(json.dumps(told) if as_json else f"search {run} goes on; `kernelevolve watch {run}` follows it")
        return
    if campaign.is_one(Path(run)):
        sys.exit(chip_by_chip.see_through(campaign.read(Path(run)), model, as_json=as_json))
    directory = rundir.open_existing(Path(run))
    finished = see_through(directory, finish(directory, model, as_json=as_json, begin_ns=begin_ns))
    sys.exit(announce(finished, as_json=as_json))
