"""Schedules alone, a model that chooses moves, a model that writes whole kernels, and the mixture: what each finds.

At equal evaluations and at equal cost (money where it has a price, otherwise seconds), over operators and seeds, each a
search of its own through the product's command line. Without further settings the packaged model answers, on this
machine; any other endpoint is named as the product names it, by ``MODEL_URL`` and what goes with it or by
``MODEL_ENDPOINTS``. ``--record FILE`` keeps answers, and ``--recorded FILE`` plays them later without any endpoint.

    python -m tests.bench.synth
    MODEL_URL=https://… MODEL_NAME=… MODEL_API_KEY=… MODEL_PRICES_INPUT=… MODEL_PRICES_OUTPUT=… \
        python -m tests.bench.synth --evaluations 100 --seeds 1,2,3,4,5 --money 2 --seconds 1800 --record answers.jsonl
    python -m tests.bench.synth --recorded answers.jsonl --no-write
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from shared.errors import UserError
from shared.machine import processor
from synthesizer_svc.settings import from_env
from tests.bench import synth_tape
from tests.bench.synth_endpoints import Answering, Configured, answering, configured, playing
from tests.bench.synth_plan import Equal, Plan, Way
from tests.bench.synth_report import Outcome, page
from tests.bench.synth_search import ROOT, SearchFailedError, operator_path, run
from tests.bench.synth_tape import Tape

RESULT = ROOT / "docs" / "results" / "synth.md"
SECONDS, SECONDS_WITH_MONEY = 40.0, 300.0
"""Of each search at equal cost: where that is time, and where it is money, which a hosted model takes minutes for."""
MONEY = 1.0
"""Of each search at equal cost, in the currency of the prices, where there are any."""
SEARCH_S_MAX = 3600.0
"""For one search where there is no other limit; what takes longer hangs, or never finds a quiet moment."""
GRACE_S = 300.0
"""For a search to end that was begun in time."""


@dataclass(kw_only=True)
class Found:
    """What the searches found so far, which of them did not end, and how many were not begun."""

    outcomes: list[Outcome] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    left: int = 0


def searches(plan: Plan, answering: Answering, folder: Path, *, minutes: float = 0.0) -> Iterator[Found]:
    """Run the searches of ``plan``, one after the other, and yield after each: what was paid for can be kept at once.

    None is begun after ``minutes``, and none is waited for ``GRACE_S`` longer; 0 is no limit.
    """
    cells = list(plan.cells())
    found, began = Found(left=len(cells)), time.monotonic()
    for cell in cells:
        left_s = minutes * 60 - (time.monotonic() - began) if minutes else SEARCH_S_MAX
        if left_s < 0:
            return
        found.left -= 1
        try:
            settings = answering.settings_of(cell, folder)
            found.outcomes.append(run(cell, plan, folder, settings, within_s=left_s + GRACE_S))
        except SearchFailedError as error:
            click.echo(str(error), err=True)
            found.unfinished.append(str(error))
        else:
            _tell(found.outcomes[-1])
        answering.keep()
        yield found


def _tell(outcome: Outcome) -> None:
    click.echo(
        f"{datetime.now(UTC):%H:%M:%S} {outcome.cell.name}: gain {outcome.gain:.3f}, {outcome.evaluations} evaluations "
        f"in {outcome.seconds:.0f} s, {outcome.requests} requests {dict(outcome.rejected) or ''}",
        err=True,
    )


def _plan(operators: str, seeds: str, ways: str, evaluations: int, chip: str) -> Plan:
    try:
        plan = Plan(
            operators=tuple(operators.split(",")),
            seeds=tuple(map(int, seeds.split(","))),
            evaluations=evaluations,
            seconds=0.0,
            ways=tuple(map(Way, ways.split(","))),
            chip=chip,
        )
        for name in plan.operators:
            operator_path(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except FileNotFoundError as error:
        raise click.UsageError(f"no example operator named {error}") from error
    return plan


def costing(plan: Plan, endpoints: Configured, money: float | None, seconds: float | None) -> Plan:
    """``plan`` at equal cost: of money, unless the endpoints have no prices or ``money`` is 0, otherwise of seconds."""
    if money and endpoints.unpriced:
        raise click.UsageError(f"--money needs prices: {endpoints.unpriced}")
    each = (0.0 if endpoints.unpriced else MONEY) if money is None else money
    usual = SECONDS_WITH_MONEY if each else SECONDS
    currency = endpoints.currency if each else ""
    return replace(plan, money=each, currency=currency, seconds=usual if seconds is None else seconds)


def bill(plan: Plan) -> str:
    """What the comparison can cost, as far as it is limited."""
    limited = sum(cell.equal is Equal.COST and cell.way.asks for cell in plan.cells())
    return (
        f"at equal cost: at most {limited * plan.money:g} {plan.currency} in {limited} searches; at equal evaluations "
        "money has no limit but MODEL_BUDGET_DAY_COST"
    )


def _endpoints() -> Configured:
    try:
        from_env(os.environ)  # says what is wrong with them
    except UserError as error:
        raise click.ClickException(str(error)) from error
    return configured(os.environ)


def _recorded(path: Path) -> tuple[Plan, Tape]:
    try:
        tape = synth_tape.load(path)
        return Plan.from_plain(tape.header["plan"]), tape
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} is no recording: {error!r}") from error
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from error


@click.command()
@click.option("--operators", default="softmax,gelu_bias_residual", show_default=True, help="Names of examples.")
@click.option("--seeds", default="1,2", show_default=True)
@click.option("--ways", default=",".join(Way), show_default=True)
@click.option("--evaluations", default=8, show_default=True, help="Of each search at equal evaluations; 0: none.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    help=f"For each search at equal cost, {SECONDS:g} or, with money, {SECONDS_WITH_MONEY:g} unless given; 0: none.",
)
@click.option(
    "--money",
    type=click.FloatRange(min=0),
    help="For each search at equal cost that asks a model, in the currency of the endpoints' prices; "
    f"{MONEY:g} unless given, where there are prices. 0: cost is time.",
)
@click.option("--chip", default="", help="Chip to search for; the product's own choice unless given.")
@click.option(
    "--minutes",
    default=0.0,
    show_default=True,
    help="Begin no search after this long, and end five later; 0: no limit.",
)
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), help="Keep the answers in this file.")
@click.option(
    "--recorded", type=click.Path(path_type=Path, dir_okay=False), help="Play the answers and the plan of this file."
)
@click.option("--write/--no-write", default=True, help="Write docs/results/synth.md.")
def main(
    operators: str,
    seeds: str,
    ways: str,
    evaluations: int,
    seconds: float | None,
    money: float | None,
    chip: str,
    minutes: float,
    record: Path | None,
    recorded: Path | None,
    write: bool,
) -> None:
    """Run the comparison and print its page, which is written anew after each search."""
    if record and recorded:
        raise click.UsageError("--record needs an endpoint, --recorded replaces it: give one of them")
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    if recorded:
        plan, tape = _recorded(recorded)
        answers = playing(tape)
    else:
        plan, endpoints = _plan(operators, seeds, ways, evaluations, chip), _endpoints()
        plan = costing(plan, endpoints, money, seconds)
        answers = answering(plan, endpoints, record=record, date=date)
    if plan.money and not recorded:
        click.echo(bill(plan), err=True)
    cpu, text, found = processor(), "", Found()
    with tempfile.TemporaryDirectory(prefix="ke-synth-") as folder, answers as who:
        for found in searches(plan, who, Path(folder), minutes=minutes):
            text = page(
                found.outcomes,
                plan,
                who.source,
                unfinished=found.unfinished,
                left=found.left,
                command=" ".join(["python -m tests.bench.synth", *sys.argv[1:]]),
                machine=f"{cpu.model}, {cpu.cores} logical processors",
                date=date,
            )
            if write:
                RESULT.write_text(text, encoding="utf-8")
    click.echo(text)
    if found.unfinished:
        raise click.ClickException(f"{len(found.unfinished)} searches did not end")


if __name__ == "__main__":
    main()
