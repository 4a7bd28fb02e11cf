"""``kernelevolve optimize``: search for the fastest validated kernel of an operator."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from cli import options, rundir
from cli.announce import announce
from cli.interruptible import see_through
from cli.live import LiveView
from cli.options import Options
from cli.requirements import require_chip, require_language, require_threads
from cli.submitted import read_operator
from search_svc import service as search_service
from search_svc.service import SUBMITTER
from shared import chips, envelopes, ids, operators
from shared.clock import SystemClock
from shared.events import SearchStarted

if TYPE_CHECKING:
    from cli.outcome import Finished


def submission(spec: operators.OperatorSpec, wanted: Options, language: str = "") -> SearchStarted:
    """The event that starts the search; its id is chosen here, from what is asked and when."""
    now_ns = SystemClock().now_ns()
    return SearchStarted(
        search_id=ids.derive("search", spec.ref.source_hash, wanted.chip, wanted.seed, now_ns),
        operator=spec.ref,
        chip=wanted.chip,
        policy=wanted.policy,
        policy_parameters=wanted.parameters,
        seed=wanted.seed,
        budget=wanted.budget,
        languages=require_language(chips.load(wanted.chip), language),
        threads=wanted.threads,
        baseline=wanted.baseline,
        at_ns=now_ns,
    )


@click.command("optimize")
@options.of_a_search
@click.option("--language", default="", metavar="NAME", help="Write in this one of the chip's languages only.")
@click.option("--out", type=click.Path(path_type=Path), help="Run directory; default runs/<time>-<operator>.")
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(operator: Path, workload: str, language: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Search for a faster kernel of OPERATOR: a KernelBench-style Python file, a definition, or an ATen call.

    \b
    Examples:
      kernelevolve optimize examples/operators/softmax.py
      kernelevolve optimize 'aten::softmax(f32[2048, 1024], dim=-1)'
      kernelevolve optimize my_op.py --policy mcts --evaluations 200 --seconds 600 --out runs/mine --json
    """
    begin_ns = time.monotonic_ns()
    spec = read_operator(operator, workload)
    wanted = options.gather(**asked)
    require_chip(wanted.chip)
    require_threads(wanted.threads)
    started = submission(spec, wanted, language)
    search_service.check(started)
    finished = run(spec, started, operator, out, as_json=as_json, begin_ns=begin_ns)
    sys.exit(announce(finished, as_json=as_json))


def run(
    spec: operators.OperatorSpec,
    started: SearchStarted,
    operator: Path,
    out: Path | None,
    *,
    as_json: bool,
    begin_ns: int,
) -> Finished:
    """Make the run directory and search in it; a refusal before the search leaves nothing behind."""
    from cli import session  # all four services: only once the input is known to be good

    directory = rundir.create(out, spec.ref.name)
    envelope = envelopes.envelope(started, cause_id=started.search_id, source=SUBMITTER, clock=SystemClock())
    rundir.write_manifest(directory, envelope, operator, stream=started.search_id)
    title = f"{spec.ref.name} on {started.chip}: {started.policy}, {started.budget.evaluations} evaluations"
    view = LiveView(Console(stderr=True), title=title, quiet=as_json and not sys.stderr.isatty())
    with view:
        return see_through(directory, session.search(directory, spec, started, view, begin_ns=begin_ns))
