"""What a search can be asked for on the command line: the same options for every command that starts one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from search_svc.policies import REGISTRY
from search_svc.service import BASELINES
from shared.errors import UserError
from shared.events import PPM, Budget, Entry

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


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("operator", type=click.Path(path_type=Path)),
    click.option("--chip", default="cpu-x86_64", show_default=True, help="Target chip; see `kernelevolve chips`."),
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
    click.option("--baseline", default="best", show_default=True, type=click.Choice(BASELINES), help="What to beat."),
)


def of_a_search(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``command`` the argument OPERATOR and the options that ``gather`` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def gather(
    *,
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
) -> Options:
    """The options as given.

    Raises:
        UserError: a policy parameter without an equals sign.
    """
    return Options(
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
