"""What a search can be asked for on the command line: the same options for every command that starts one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from cli.chip_option import HELP_OF_SEVERAL, chip_ids
from search_svc.policies import REGISTRY
from search_svc.service import BASELINES
from shared.errors import UserError
from shared.events import PPM, Budget, Entry, ModelBudget
from shared.shapes import INT64_MAX, INT64_MIN
from shared.usage import MICRO

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line asked for."""

    chips: tuple[str, ...]
    """One, or several that differ."""
    policy: str
    parameters: tuple[Entry, ...]
    budget: Budget
    seed: int
    threads: int
    baseline: str


_OF_MODELS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--model-budget",
        default=0.0,
        metavar="AMOUNT",
        help="What the whole search may spend on models, in the currency of their prices; then it pauses. 0: no limit.",
    ),
    click.option("--model-tokens", default=0, help="The same in tokens, read and written. 0: no limit."),
)

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("operator", type=click.Path(path_type=Path)),
    click.option("--workload", default="", metavar="UUID", help="Of a definition's, when it has several."),
    click.option(
        "--chip", multiple=True, callback=chip_ids, default=("cpu-x86_64",), show_default=True, help=HELP_OF_SEVERAL
    ),
    click.option("--policy", default="greedy", show_default=True, help=f"How to search: {', '.join(REGISTRY)}."),
    click.option(
        "--policy-parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Parameter of the policy."
    ),
    click.option("--evaluations", default=40, show_default=True, help="Candidates to evaluate at most."),
    click.option("--seconds", default=0.0, help="Stop after this many seconds; 0 means no limit."),
    click.option("--stall", default=0, help="Stop after this many evaluations without a new best; 0 means no limit."),
    click.option("--seed", default=0, show_default=True, help="Seed of every decision."),
    click.option("--threads", default=1, show_default=True, help="Threads a kernel and the baselines may use."),
    click.option("--target-speedup", default=0.0, help="Stop at this speedup; 0 means no limit."),
    click.option("--sol-fraction", default=0.0, help="Stop at this fraction of the speed of light; 0 means no limit."),
    *_OF_MODELS,
    click.option("--baseline", default="best", show_default=True, type=click.Choice(BASELINES), help="What to beat."),
)


def of_a_search(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``command`` the argument OPERATOR and the options that ``gather`` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def of_models(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``command`` the options that ``budget_of_models`` reads."""
    for option in reversed(_OF_MODELS):
        command = option(command)
    return command


def gather(
    *,
    chip: tuple[str, ...],
    policy: str,
    parameters: tuple[str, ...],
    evaluations: int,
    seconds: float,
    stall: int,
    seed: int,
    threads: int,
    target_speedup: float,
    sol_fraction: float,
    model_budget: float,
    model_tokens: int,
    baseline: str,
) -> Options:
    """The options as given.

    Raises:
        UserError: a policy parameter without an equals sign, or a number that no search can hold.
    """
    return Options(
        chips=chip,
        policy=policy,
        parameters=entries(parameters),
        budget=Budget(
            evaluations=whole("--evaluations", evaluations),
            wall_ns=whole("--seconds", seconds, NS_PER_S),
            stall=whole("--stall", stall),
            target_speedup_ppm=whole("--target-speedup", target_speedup, PPM),
            sol_fraction_ppm=whole("--sol-fraction", sol_fraction, PPM),
            model=budget_of_models(model_budget, model_tokens),
        ),
        seed=whole("--seed", seed),
        threads=whole("--threads", threads),
        baseline=baseline,
    )


def budget_of_models(amount: float, tokens: int) -> ModelBudget:
    """What models may cost, as events carry it.

    Raises:
        UserError: a number that is none, or below 0.
    """
    made = ModelBudget(tokens=whole("--model-tokens", tokens), cost_micro=whole("--model-budget", amount, MICRO))
    for option, value in (("--model-tokens", made.tokens), ("--model-budget", made.cost_micro)):
        if value < 0:
            raise UserError("is negative", where=option, hint="0 means no limit")
    return made


def whole(option: str, value: float, unit: int = 1) -> int:
    """``value`` in ``unit``-ths, as events carry it.

    Raises:
        UserError: no number, one of more than 64 bits, or one that would become 0, which means something else.
    """
    if isinstance(value, int):
        number = value * unit
    elif math.isfinite(value):
        number = round(value * unit)
    else:
        raise UserError(f"is {value}", where=option)
    if not INT64_MIN <= number <= INT64_MAX:
        raise UserError(f"{value} is out of range", where=option)
    if value and not number:
        raise UserError(f"{value} is too small: the least is {1 / unit:g}", where=option)
    return number


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
