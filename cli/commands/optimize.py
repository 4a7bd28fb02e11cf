"""``kernelevolve optimize``: search for the fastest validated kernel of an operator."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from cli import campaign, chip_by_chip, options
from cli.announce import announce
from cli.beginning import begin, submission
from cli.requirements import require_chip, require_threads
from cli.submitted import read_operator
from search_svc import service as search_service


@click.command("optimize")
@options.of_a_search
@click.option("--language", default="", metavar="NAME", help="Write in this one of the chip's languages only.")
@click.option("--out", type=click.Path(path_type=Path), help="Run directory; default runs/<time>-<operator>.")
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(operator: Path, workload: str, language: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Search for a faster kernel of OPERATOR: a KernelBench-style Python file, a definition, or an ATen call.

    With several --chip there is a search for each, one after the other in the order given, so that none disturbs what
    is timed for another. The best schedules of the chips before are drafts of the next, untested there. Each search has
    all limits to itself and a run directory of its own under one; in the end there is one table. The exit code is the
    worst of them: 2 before 1 before 75 (a search that waits to be resumed) before 0.

    \b
    Examples:
      kernelevolve optimize examples/operators/softmax.py
      kernelevolve optimize 'aten::softmax(f32[2048, 1024], dim=-1)'
      kernelevolve optimize my_op.py --policy mcts --evaluations 200 --seconds 600 --out runs/mine --json
      kernelevolve optimize my_op.py --chip cpu-x86_64 --chip nvidia-sm_90 --chip amd-gfx942
    """
    begin_ns = time.monotonic_ns()
    spec = read_operator(operator, workload)
    wanted = options.gather(**asked)
    for chip in wanted.chips:
        require_chip(chip)
    require_threads(wanted.threads)
    searches = tuple(submission(spec, wanted, chip, language) for chip in wanted.chips)
    for started in searches:
        search_service.check(started)
    if len(searches) > 1:
        made = campaign.create(out, spec, searches, operator)
        sys.exit(chip_by_chip.see_through(made, as_json=as_json))
    finished = begin(spec, searches[0], operator, out, as_json=as_json, begin_ns=begin_ns)
    sys.exit(announce(finished, as_json=as_json))
