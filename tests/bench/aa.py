"""Equal kernels against each other (A/A), and against one with 2 % more work (A/B): how often a claim is wrong.

    make aa
    python -m tests.bench.aa --trials 26 --slowed 13 --busy 0 --operators softmax,row_sum --no-write

Each trial is the evaluator's own measurement of a right kernel, ``Measurer.measure``, in which a second process of the
kernel stands in the place of the baselines. In the busy part two compilers run beside.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from evaluator_svc.evaluate import Evaluator
from evaluator_svc.evaluators import toolchain_of
from evaluator_svc.ledger import Ledger
from evaluator_svc.measuring import Subject
from evaluator_svc.noise_floor import NoiseFloor
from evaluator_svc.settings import from_env
from evaluator_svc.stages import Stopwatch
from evaluator_svc.statistics import A_A_FEWEST
from evaluator_svc.workbench import Workbench
from shared import operators
from shared.machine import processor
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from tests.bench.aa_kernels import Kernels, draft, prepared
from tests.bench.aa_report import Kind, Outcome, Trial, outcome, page, summary
from tests.bench.aa_twin import TWIN, Twin

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = ROOT / "examples" / "operators"
RESULTS = ROOT / "docs" / "results"
CHIP = "cpu-x86_64"
SLOWDOWN = 0.02
COMPILED = "#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\nint main() { return 0; }\n"
PROBES_MAX = 10
"""Of the worker's own noise, before the first trial."""
FRACTION_BUSY = 0.35
"""Of the time that is left to an operator, for its busy part."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Trials in all, over ``names``; ``seconds`` bounds the whole."""

    names: tuple[str, ...]
    equal: int
    slowed: int
    final: int
    busy: int
    seconds: float

    def of(self, index: int, total: int) -> int:
        """The share of ``total`` of the operator at ``index``: the first ones get what cannot be divided."""
        return total // len(self.names) + (index < total % len(self.names))


class Experiment:
    """Runs a plan; ``trials`` and ``slowdowns`` grow."""

    def __init__(self, plan: Plan, ports: Ports, evaluator: Evaluator) -> None:
        self._plan, self._ports, self._evaluator = plan, ports, evaluator
        self.trials: list[Trial] = []
        self.slowdowns: dict[str, float] = {}
        self._until = time.monotonic() + plan.seconds

    async def run(self) -> None:
        """Every operator in turn."""
        for index, name in enumerate(self._plan.names):
            left = len(self._plan.names) - index
            share = max(0.0, self._until - time.monotonic()) / left
            await self._operator(name, index, time.monotonic() + share)
            _tell(f"{name}: {_counts([one for one in self.trials if one.operator == name])}")

    async def _operator(self, name: str, index: int, until: float) -> None:
        spec = operators.load(OPERATORS / f"{name}.py")
        await self._ports.store.blobs.put(spec.source.encode())
        source, flags = await draft(spec, CHIP)
        evaluator = self._evaluator
        place = await evaluator._place(spec.ref, 1)
        async with evaluator._benches.use(*place) as bench:
            suite, _ = await bench.suite()
            await bench.pool()
            async with evaluator._device.exclusive():
                kernels = await prepared(
                    source, flags, evaluator._toolchain, suite, evaluator.settings, bench.cpus, slowdown=SLOWDOWN
                )  # fmt: skip
            self.slowdowns[name] = kernels.slowdown
            plan = self._plan
            quiet = [Kind.EQUAL] * plan.of(index, plan.equal) + [Kind.SLOWED] * plan.of(index, plan.slowed)
            busy = [Kind.EQUAL] * plan.of(index, plan.busy) + [Kind.SLOWED] * plan.of(index, plan.busy)
            end_of_quiet = until - FRACTION_BUSY * (until - time.monotonic()) if busy else until
            await self._some(name, bench, kernels, [Kind.FINAL] * plan.of(index, plan.final), end_of_quiet)
            await self._some(name, bench, kernels, _interleaved(quiet), end_of_quiet)
            if busy:
                with compilers(os.cpu_count() or 1):
                    await self._some(name, bench, kernels, _interleaved(busy), until, busy=True)

    async def _some(
        self, name: str, bench: Workbench, kernels: Kernels, kinds: list[Kind], until: float, *, busy: bool = False
    ) -> None:
        """One of each kind even when time is up, so that no operator is left out."""
        for number, kind in enumerate(kinds):
            if time.monotonic() > until and kind in kinds[:number]:
                continue
            self.trials.append(await self._trial(name, bench, kernels, kind, busy=busy))

    async def _trial(self, name: str, bench: Workbench, kernels: Kernels, kind: Kind, *, busy: bool) -> Trial:
        suite, _ = await bench.suite()
        begin = time.monotonic()
        async with Twin(kernels.normal, suite, bench.cpus) as twin:
            subject = Subject(
                built=kernels.slow if kind is Kind.SLOWED else kernels.normal,
                suite=suite,
                bench=bench,
                baselines=twin,  # type: ignore[arg-type] - what a contest needs of them
                answers=(),
                final=kind is Kind.FINAL,
                ledger=Ledger(),
            )
            claim = await self._evaluator._measurer.measure(subject, Stopwatch())
        word, ratio = outcome(claim)
        rounds = next((len(one.block_ns) // 2 for one in claim.timings if one.name == TWIN), 0)
        said = "; ".join(f"{entry.name}: {entry.value}" for entry in claim.evidence)
        return Trial(
            operator=name,
            kind=kind,
            busy=busy,
            outcome=word,
            log_ratio=ratio,
            rounds=rounds,
            seconds=time.monotonic() - begin,
            said="" if word in (Outcome.UNDECIDED, Outcome.SLOWER) and kind is Kind.SLOWED else said[:400],
        )

    async def floor(self) -> float:
        """The worker's noise floor, known as well as a worker that has run for a while knows it."""
        settings = self._evaluator.settings
        history = NoiseFloor(settings.cache)
        for _ in range(PROBES_MAX):
            if len(history.history(1)) >= A_A_FEWEST:
                break
            found = await self._evaluator.probe(thorough=True)
            if not found.healthy:
                raise click.ClickException(f"this worker fails its own probe: {found.fault}")
        return history.delta(1)


def _interleaved(kinds: list[Kind]) -> list[Kind]:
    """Kinds in turn, so that none has the machine's better hour to itself."""
    first = [kind for kind in kinds if kind is Kind.EQUAL]
    others = [kind for kind in kinds if kind is not Kind.EQUAL]
    mixed: list[Kind] = []
    while first or others:
        share = len(first) / (len(first) + len(others))
        taken = sum(kind is Kind.EQUAL for kind in mixed[-4:])
        mixed.append(first.pop() if first and (not others or taken <= 4 * share) else others.pop())
    return mixed


@contextmanager
def compilers(count: int) -> Iterator[None]:
    """``count`` of them, one after the other for ever, for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="ke-aa-") as folder:
        source = Path(folder) / "busy.cpp"
        source.write_text(COMPILED)
        # They end with this program, however that ends: orphans would disturb whatever is measured next.
        loop = f'while kill -0 {os.getpid()} 2>/dev/null; do g++ -O2 -std=c++17 -c "$0" -o /dev/null; done'
        running = [
            subprocess.Popen(["sh", "-c", loop, str(source)], cwd=folder, start_new_session=True) for _ in range(count)
        ]
        try:
            time.sleep(0.5)  # until they compile rather than start
            yield
        finally:
            for one in running:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()


def _tell(text: str) -> None:
    click.echo(f"{datetime.now(UTC):%H:%M:%S} {text}", err=True)


def _counts(trials: list[Trial]) -> str:
    parts = []
    for label, group in summary(trials).items():
        parts.append(f"{label}: faster {group['faster']}, slower {group['slower']}, NOISY {group['NOISY']}")
    return "; ".join(parts)


async def _main(plan: Plan) -> tuple[Experiment, float]:
    settings = from_env(os.environ)
    settings = replace(settings, timing=replace(settings.timing, noisy_tries=1), chip=CHIP)
    async with open_ports(PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")) as ports:
        evaluator = Evaluator(ports, settings, toolchain_of(CHIP))
        try:
            experiment = Experiment(plan, ports, evaluator)
            delta = await experiment.floor()
            _tell(f"noise floor {100 * delta:.2f} %")
            await experiment.run()
        finally:
            await evaluator.close()
    return experiment, delta


@click.command()
@click.option("--trials", default=208, show_default=True, help="A/A: the same kernel in two processes.")
@click.option("--slowed", default=104, show_default=True, help="A/B: with 2 % more work.")
@click.option("--final", default=13, show_default=True, help="A/A by final measurements, of several processes each.")
@click.option("--busy", default=39, show_default=True, help="Of either kind, with compilers beside.")
@click.option("--operators", "only", default="", help="Comma-separated names of examples; all by default.")
@click.option("--seconds", default=720.0, show_default=True, help="For everything; fewer trials when it is not enough.")
@click.option("--write/--no-write", default=True, help="Write docs/results/aa.md and aa.json.")
def main(trials: int, slowed: int, final: int, busy: int, only: str, seconds: float, write: bool) -> None:
    """Run the experiment and print its page."""
    names = tuple(n for n in only.split(",") if n) or tuple(sorted(path.stem for path in OPERATORS.glob("*.py")))
    plan = Plan(names=names, equal=trials, slowed=slowed, final=final, busy=busy, seconds=seconds)
    begin = time.monotonic()
    experiment, delta = asyncio.run(_main(plan))
    cpu = processor()
    machine = f"{cpu.model}, {cpu.cores} logical processors; {time.monotonic() - begin:.0f} s"
    command = " ".join(["python -m tests.bench.aa", *sys.argv[1:]])
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    text = page(experiment.trials, experiment.slowdowns, command=command, machine=machine, delta=delta, date=date)
    click.echo(text)
    if write:
        (RESULTS / "aa.md").write_text(text)
        plain = {
            "command": command,
            "machine": machine,
            "date": date,
            "delta": delta,
            "summary": summary(experiment.trials),
            "slowdowns": experiment.slowdowns,
            "trials": [asdict(one) for one in experiment.trials],
        }
        (RESULTS / "aa.json").write_text(json.dumps(plain, indent=1) + "\n")


if __name__ == "__main__":
    main()
