"""Searches on a local cluster while its processes are killed, against the same searches undisturbed.

``python -m tests.chaos.run --seed 1 --searches 20``
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tests.chaos.faults import Fault, Kind, plan
from tests.chaos.play import Run, play
from tests.chaos.report import differing, markdown
from tests.chaos.system import system
from tests.chaos.wishes import Wish, wishes

KINDS = {kind.name.lower(): kind for kind in Kind}


@click.command()
@click.option("--seed", "seeds", type=int, multiple=True, default=(1,), show_default=True, help="May be repeated.")
@click.option("--searches", type=int, default=20, show_default=True)
@click.option("--evaluations", type=int, default=16, show_default=True, help="Budget of each search.")
@click.option("--rounds", type=int, default=1, show_default=True, help="How often every fault happens.")
@click.option("--workers", type=int, default=3, show_default=True)
@click.option("--median", "median_s", type=float, default=1.0, show_default=True, help="Seconds per evaluation.")
@click.option("--kind", "kinds", type=click.Choice(list(KINDS)), multiple=True, help="Only these faults.")
@click.option(
    "--within", "within_s", type=float, default=600.0, show_default=True, help="Seconds after the last fault."
)
@click.option("--report", type=click.Path(path_type=Path), help="Write the result there, as Markdown.")
@click.option("--logs", type=click.Path(path_type=Path), help="Keep the processes' logs there.")
def main(
    seeds: tuple[int, ...],
    searches: int,
    evaluations: int,
    rounds: int,
    workers: int,
    median_s: float,
    kinds: tuple[str, ...],
    within_s: float,
    report: Path | None,
    logs: Path | None,
) -> None:
    """Exit status 1 when something was lost, doubled or different."""
    chosen = tuple(KINDS[name] for name in kinds) or tuple(Kind)
    environment = {"SIMULATED_MEDIAN_S": str(median_s)}
    rows: list[tuple[int, Run, Run]] = []
    for seed in seeds:
        wanted = wishes(searches, evaluations, seed)
        faults = plan(seed, workers=workers, rounds=rounds, kinds=chosen)

        def once(name: str, faults: Sequence[Fault] = (), wanted: tuple[Wish, ...] = wanted, seed: int = seed) -> Run:
            click.echo(f"seed {seed}: {len(wanted)} searches, {name}")
            with system(workers, keep=logs and logs / f"{seed}-{name}", **environment) as made:
                return asyncio.run(play(made, wanted, faults, within_s=within_s, tell=click.echo))

        run, calm = once("disturbed", faults), once("undisturbed")
        rows.append((seed, run, calm))
        for line in (*run.problems, *calm.problems, *differing(run, calm, wanted)):
            click.echo(f"  {line}", err=True)
    text = markdown(rows, searches, evaluations, workers, median_s)
    if report is not None:
        report.write_text(text, encoding="utf-8")
    click.echo(text)
    bad = any(
        run.problems or calm.problems or differing(run, calm, wishes(searches, evaluations, seed))
        for seed, run, calm in rows
    )
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
