"""Searches on a local cluster while its processes are killed, against the same searches undisturbed.

``python -m tests.chaos.run --seed 1 --searches 20``
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from tests.chaos.faults import Fault, Kind, plan
from tests.chaos.play import Run, play
from tests.chaos.report import markdown
from tests.chaos.rolling import Rolled, roll
from tests.chaos.system import system
from tests.chaos.trial import Trial
from tests.chaos.wishes import wishes

KINDS = {kind.name.lower(): kind for kind in Kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the command line says."""

    searches: int
    evaluations: int
    workers: int
    rounds: int
    median_s: float
    within_s: float
    kinds: tuple[Kind, ...]
    logs: Path | None

    def trial(self, seed: int) -> Trial:
        """Both runs of a seed."""
        faults = plan(seed, workers=self.workers, rounds=self.rounds, kinds=self.kinds)
        wanted = wishes(self.searches, self.evaluations, seed)
        disturbed = self.run(seed, "disturbed", faults)
        return Trial(seed=seed, wishes=wanted, disturbed=disturbed, calm=self.run(seed, "undisturbed", ()))

    def run(self, seed: int, name: str, faults: Sequence[Fault]) -> Run:
        """A run in a cluster of its own."""
        click.echo(f"seed {seed}: {self.searches} searches, {name}")
        wanted = wishes(self.searches, self.evaluations, seed)
        with system(self.workers, keep=self._folder(f"{seed}-{name}"), SIMULATED_MEDIAN_S=str(self.median_s)) as made:
            return asyncio.run(play(made, wanted, faults, within_s=self.within_s, tell=click.echo))

    def roll(self, seed: int) -> Rolled:
        """A rolling restart in a cluster of its own."""
        click.echo(f"seed {seed}: rolling restart")
        wanted = wishes(self.searches, self.evaluations, seed)
        with system(self.workers, keep=self._folder("rolling"), SIMULATED_MEDIAN_S=str(self.median_s)) as made:
            return asyncio.run(roll(made, self.workers, wanted, within_s=self.within_s, tell=click.echo))

    def command(self, seeds: Sequence[int]) -> str:
        """What gives the same searches and faults again."""
        options = [f"--seed {seed}" for seed in seeds]
        options += [f"--searches {self.searches}", f"--evaluations {self.evaluations}", f"--rounds {self.rounds}"]
        options += [f"--workers {self.workers}", f"--median {self.median_s:g}"]
        if self.kinds != tuple(Kind):
            options += [f"--kind {kind.name.lower()}" for kind in self.kinds]
        return " ".join(["python -m tests.chaos.run", *options])

    def _folder(self, name: str) -> Path | None:
        return self.logs and self.logs / name


@click.command()
@click.option("--seed", "seeds", type=int, multiple=True, default=(1,), show_default=True, help="May be repeated.")
@click.option("--searches", type=int, default=20, show_default=True)
@click.option("--evaluations", type=int, default=32, show_default=True, help="Budget of each search.")
@click.option("--rounds", type=int, default=1, show_default=True, help="How often every fault happens.")
@click.option("--workers", type=int, default=3, show_default=True, help="Evaluators, of two slots each.")
@click.option("--median", "median_s", type=float, default=1.5, show_default=True, help="Seconds per evaluation.")
@click.option("--kind", "kinds", type=click.Choice(list(KINDS)), multiple=True, help="Only these faults.")
@click.option(
    "--within", "within_s", type=float, default=600.0, show_default=True, help="Seconds after the last fault."
)
@click.option("--rolling/--no-rolling", default=True, help="A rolling restart besides.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the result there, as Markdown.")
@click.option("--logs", type=click.Path(path_type=Path), help="Keep the processes' logs there.")
def main(seeds: tuple[int, ...], rolling: bool, report: Path | None, kinds: tuple[str, ...], **choices: object) -> None:
    """Exit status 1 when something was lost, doubled or different."""
    chosen = Choices(kinds=tuple(KINDS[name] for name in kinds) or tuple(Kind), **choices)  # type: ignore[arg-type]
    trials = [chosen.trial(seed) for seed in seeds]
    rolled = chosen.roll(seeds[0]) if rolling else None
    text = markdown(chosen.command(seeds), trials, rolled)
    if report is not None:
        report.write_text(text, encoding="utf-8")
    click.echo(text)
    sys.exit(1 if any(trial.problems for trial in trials) or (rolled and rolled.problems) else 0)


if __name__ == "__main__":
    main()
