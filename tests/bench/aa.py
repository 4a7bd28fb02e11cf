"""Equal kernels against each other (A/A), and against one with 2 % more work (A/B): how often a claim is wrong.

    make aa
    python -m tests.bench.aa --trials 26 --slowed 13 --busy 0 --operators softmax,row_sum --no-write

Each trial is the evaluator's own measurement of a right kernel, ``Measurer.measure``, in which a second process of the
kernel stands in the place of the baselines. In the busy part two compilers run beside. When time is up, on Ctrl-C and
after a failure the page is written of the trials that were made, and says which were not.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from evaluator_svc.settings import from_env
from shared.errors import UserError
from shared.machine import processor
from shared.ports import open_ports
from shared.settings import PortSettings
from tests.bench.aa_experiment import Experiment, Plan, worker
from tests.bench.aa_report import About, page, summary

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = ROOT / "examples" / "operators"
RESULTS = ROOT / "docs" / "results"


async def _main(experiment: Experiment) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    ports = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
    async with open_ports(ports) as opened, worker(opened, from_env(os.environ)) as able:
        await experiment.run(able)


def _tell(text: str) -> None:
    click.echo(f"{datetime.now(UTC):%H:%M:%S} {text}", err=True)


def _files(only: str) -> tuple[Path, ...]:
    found = {path.stem: path for path in sorted(OPERATORS.glob("*.py"))}
    names = [name for name in only.split(",") if name] or list(found)
    unknown = [name for name in names if name not in found]
    if unknown:
        raise UserError(f"no example operator is named `{unknown[0]}`", hint=f"there are {', '.join(found)}")
    return tuple(found[name] for name in names)


@click.command()
@click.option("--trials", default=208, show_default=True, help="A/A: the same kernel in two processes.")
@click.option("--slowed", default=104, show_default=True, help="A/B: with 2 % more work.")
@click.option("--final", default=13, show_default=True, help="A/A by final measurements, of several processes each.")
@click.option("--busy", default=39, show_default=True, help="Of either kind, with compilers beside.")
@click.option("--operators", "only", default="", help="Comma-separated names of examples; all by default.")
@click.option("--seconds", default=1500.0, show_default=True, help="For everything; fewer trials when it is too short.")
@click.option("--write/--no-write", default=True, help="Write docs/results/aa.md and aa.json.")
def main(trials: int, slowed: int, final: int, busy: int, only: str, seconds: float, write: bool) -> None:
    """Run the experiment and print its page."""
    try:
        files = _files(only)
    except UserError as error:
        raise click.ClickException(str(error)) from error
    plan = Plan(files=files, equal=trials, slowed=slowed, final=final, busy=busy, seconds=seconds)
    experiment, begin, stopped = Experiment(plan, _tell), time.monotonic(), ""
    try:
        asyncio.run(_main(experiment))
    except (KeyboardInterrupt, asyncio.CancelledError):
        stopped = "interrupted"
    except BaseException as error:
        stopped = f"{type(error).__name__}: {error}"
        raise
    finally:
        cpu = processor()
        about = About(
            command=" ".join(["python -m tests.bench.aa", *sys.argv[1:]]),
            machine=f"{cpu.model}, {cpu.cores} logical processors",
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            seconds=time.monotonic() - begin,
            prepared_s=tuple(experiment.prepared_s),
            delta=experiment.delta,
            pairs=experiment.pairs,
            stopped=stopped,
            planned=plan.groups(),
        )
        text = page(experiment.trials, experiment.slowdowns, about)
        click.echo(text)
        if write and experiment.trials:
            (RESULTS / "aa.md").write_text(text)
            plain = {
                "command": about.command,
                "machine": about.machine,
                "date": about.date,
                "seconds": about.seconds,
                "stopped": about.stopped,
                "delta": about.delta,
                "pairs": about.pairs,
                "summary": summary(experiment.trials, about.planned),
                "slowdowns": {name: asdict(one) for name, one in experiment.slowdowns.items()},
                "trials": [asdict(one) for one in experiment.trials],
            }
            (RESULTS / "aa.json").write_text(json.dumps(plain, indent=1) + "\n")
    if stopped:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
