"""``kernelevolve optimize``: search for the fastest validated kernel of an operator."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cli import rundir
from cli.announce import announce
from cli.interruptible import see_through
from cli.live import LiveView
from cli.requirements import require_chip, require_threads
from search_svc import service as search_service
from search_svc.policies import REGISTRY
from search_svc.service import BASELINES, SUBMITTER
from shared import envelopes, ids, operators
from shared.clock import SystemClock
from shared.errors import UserError
from shared.events import PPM, Budget, Entry, SearchStarted

if TYPE_CHECKING:
    from cli.session import Finished

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line asked for."""

    chip: str
    policy: str
    parameters: tuple[Entry, ...]
    budget: Budget
    seed: int
    threads: int
    baseline: str


def entries(values: tuple[str, ...]) -> tuple[Entry, ...]:
    """``name=value`` options as entries.

    Raises:
        UserError: one without an equals sign.
    """
    pairs = [value.partition("=") for value in values]
    for name, sign, _ in pairs:
        if not sign or not name:
            raise UserError(f"`{name}` is not NAME=VALUE", where="--policy-parameter")
    return tuple(Entry(name=name, value=value) for name, _, value in pairs)


def submission(spec: operators.OperatorSpec, options: Options) -> SearchStarted:
    """The event that starts the search; its id is chosen here, from what is asked and when."""
    now_ns = SystemClock().now_ns()
    return SearchStarted(
        search_id=ids.derive("search", spec.ref.source_hash, options.chip, options.seed, now_ns),
        operator=spec.ref,
        chip=options.chip,
        policy=options.policy,
        policy_parameters=options.parameters,
        seed=options.seed,
        budget=options.budget,
        threads=options.threads,
        baseline=options.baseline,
        at_ns=now_ns,
    )


@click.command("optimize")
@click.argument("operator", type=click.Path(path_type=Path))
@click.option("--chip", default="cpu-x86_64", show_default=True, help="Target chip; see `kernelevolve chips`.")
@click.option("--policy", default="greedy", show_default=True, help=f"How to search: {', '.join(REGISTRY)}.")
@click.option("--policy-parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Parameter of the policy.")
@click.option("--evaluations", default=40, show_default=True, help="Candidates to evaluate at most.")
@click.option("--seconds", default=0.0, help="Stop after this many seconds; 0 means no limit.")
@click.option("--stall", default=0, help="Stop after this many evaluations without a new best; 0 means no limit.")
@click.option("--seed", default=0, show_default=True, help="Seed of every decision.")
@click.option("--threads", default=1, show_default=True, help="Threads a kernel and the baselines may use.")
@click.option("--target-speedup", default=0.0, help="Stop at this speedup; 0 means no limit.")
@click.option("--sol-fraction", default=0.0, help="Stop at this fraction of the speed of light; 0 means no limit.")
@click.option("--baseline", default="best", show_default=True, type=click.Choice(BASELINES), help="What to beat.")
@click.option("--out", type=click.Path(path_type=Path), help="Run directory; default runs/<time>-<operator>.")
@click.option("--json", "as_json", is_flag=True, help="Print one final JSON object on stdout.")
def command(
    operator: Path,
    chip: str,
    policy: str,
    parameters: tuple[str, ...],
    evaluations: int,
    seconds: float,
    stall: int,
    seed: int,
    threads: int,
    target_speedup: float,
    sol_fraction: float,
    baseline: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Search for a faster kernel of OPERATOR, a KernelBench-style Python file.

    \b
    Examples:
      kernelevolve optimize examples/operators/softmax.py
      kernelevolve optimize my_op.py --policy mcts --evaluations 200 --seconds 600 --out runs/mine --json
    """
    begin_ns = time.monotonic_ns()
    spec = operators.load(operator)
    require_chip(chip)
    require_threads(threads)
    options = Options(
        chip=chip,
        policy=policy,
        parameters=entries(parameters),
        budget=Budget(
            evaluations=evaluations,
            wall_ns=round(seconds * NS_PER_S),
            stall=stall,
            target_speedup_ppm=round(target_speedup * PPM),
            sol_fraction_ppm=round(sol_fraction * PPM),
        ),
        seed=seed,
        threads=threads,
        baseline=baseline,
    )
    started = submission(spec, options)
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
