"""Equal kernels on a GPU, through the whole evaluator: how often a claim is wrong, and whether 2 % more work is seen.

    python -m tests.bench.gpu_aa --seconds 540
    python -m tests.bench.gpu_aa --chip cpu-x86_64 --only torch_softmax --equal 4 --slowed 2

The operator's reference is a kernel, and the candidate is that kernel (``gpu_aa_kernels.py``). Each trial is one SEARCH
evaluation as a worker makes it, build, checks and all; what is claimed is read from its verdict: against ``eager``, the
baseline that launches the kernel in the same way. What the extra work takes is measured with ten times as much of it,
first. When time is up the page is written of the trials that were made, and says which were not.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from evaluator_svc.evaluators import Evaluates, evaluator_of
from evaluator_svc.kernel_policy import LibraryKernels
from evaluator_svc.settings import Settings, from_env
from evaluator_svc.toolchains.hosted import LANGUAGES
from shared import ids, operators
from shared.events import PPM, Evaluation, EvaluationRequested, KernelRef, Purpose, Status
from shared.operators import OperatorSpec
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from tests.bench.aa_report import Kind, Outcome, Trial, by_operator, headlines, outcome
from tests.bench.gpu_aa_kernels import WORKLOADS, Workload
from tests.bench.gpu_operators import machine

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
SLOWDOWN, TEN = 0.02, 10
"""The share of a call that is looked for, and how many times as much it is measured with."""
PROBES, TRIES = 3, 5
"""Measurements of it, and tries of each while the moment is noisy."""
BASELINE = "eager"


class Bench:
    """One evaluator, and the trials of one workload after the other."""

    def __init__(self, ports: Ports, evaluator: Evaluates, chip: str) -> None:
        self._ports, self._evaluator, self._chip = ports, evaluator, chip
        self._marks = itertools.count()

    async def evaluate(self, workload: Workload, spec: OperatorSpec, extra_ppm: int) -> Evaluation:
        """A SEARCH evaluation of the kernel with so much more work, in a text that was never evaluated."""
        source = workload.candidate(extra_ppm, next(self._marks))
        blobs = self._ports.store.blobs
        await blobs.put(spec.source.encode())
        digest = await blobs.put(source.encode())
        request = EvaluationRequested(
            search_id="equal-kernels",
            evaluation_id=ids.derive("evaluation", digest),
            candidate_id=ids.derive("candidate", digest),
            kernel=KernelRef(
                kernel_id=ids.derive(workload.language, digest), language=workload.language, source_hash=digest
            ),
            operator=spec.ref,
            chip=self._chip,
            purpose=Purpose.SEARCH,
        )
        return await self._evaluator.evaluate(request)

    async def extra(self, workload: Workload, spec: OperatorSpec) -> int:
        """Parts per million of extra work that take ``SLOWDOWN`` of a call, found with ``TEN`` times as many.

        Raises:
            RuntimeError: a kernel that is right was refused.
        """
        asked = round(PPM * SLOWDOWN * TEN)
        slower = []
        for _ in range(PROBES):
            plain, more = [await self._ratio(workload, spec, extra) for extra in (0, asked)]
            slower.append(plain / more - 1)
        return round(asked * SLOWDOWN / max(statistics.median(slower), SLOWDOWN))

    async def _ratio(self, workload: Workload, spec: OperatorSpec, extra_ppm: int) -> float:
        """Baseline over candidate, in a moment that is not too noisy to tell."""
        for _ in range(TRIES):
            found = await self.evaluate(workload, spec, extra_ppm)
            for speedup in found.speedups:
                if speedup.baseline == BASELINE:
                    return speedup.ratio_ppm / PPM
            if found.status is not Status.NOISY:
                break
        said = "; ".join(f"{entry.name}: {entry.value}" for entry in found.evidence)
        raise RuntimeError(f"a kernel that is right is called {found.status.value}: {said[:600]}")


def trial(workload: str, kind: Kind, found: Evaluation, seconds: float) -> Trial:
    """What a verdict says, by the words of the product (pure)."""
    said = "; ".join(f"{entry.name}: {entry.value}" for entry in found.evidence)
    speedup = next((one for one in found.speedups if one.baseline == BASELINE), None)
    word, ratio = outcome(found.status, speedup)
    rounds = next((len(one.block_ns) // 2 for one in found.timings if one.name == BASELINE), 0)
    expected = Outcome.SLOWER if kind is Kind.SLOWED else Outcome.UNDECIDED
    return Trial(
        operator=workload,
        kind=kind,
        busy=False,
        outcome=word,
        log_ratio=ratio,
        rounds=rounds,
        seconds=seconds,
        said="" if word is expected else f"{found.status.value}: {said}"[:400],
    )


class Experiment:
    """``trials`` and ``slowdowns`` are what there is so far."""

    def __init__(self, workloads: list[Workload], equal: int, slowed: int, seconds: float) -> None:
        self._workloads, self._equal, self._slowed = workloads, equal, slowed
        self._until = time.monotonic() + seconds
        self.trials: list[Trial] = []
        self.slowdowns: dict[str, str] = {}
        self.delta = math.nan

    async def run(self, settings: Settings, tell: Callable[[str], None]) -> None:
        """Every workload in turn, each with its share of the time that is left."""
        async with open_ports(PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")) as ports:
            evaluator = evaluator_of(ports, settings)
            try:
                for index, workload in enumerate(self._workloads):
                    share = max(0.0, self._until - time.monotonic()) / (len(self._workloads) - index)
                    bench = Bench(ports, evaluator, settings.chip)
                    await self._one(bench, workload, time.monotonic() + share, tell)
            finally:
                await evaluator.close()

    async def _one(self, bench: Bench, workload: Workload, until: float, tell: Callable[[str], None]) -> None:
        spec, begin = operators.parse(workload.operator, name=workload.name), time.monotonic()
        extra = 0
        if self._slowed:
            extra = await bench.extra(workload, spec)
            self.slowdowns[workload.name] = f"{100 * SLOWDOWN:.2f} % by {extra / 1e4:.2f} % more work"
            tell(f"{workload.name}: {self.slowdowns[workload.name]}, {time.monotonic() - begin:.0f} s")
        equal, slowed = self._equal // len(self._workloads), self._slowed // len(self._workloads)
        every = max(1, (equal + slowed) // max(1, slowed))
        kinds = [Kind.SLOWED if slowed and i % every == every - 1 else Kind.EQUAL for i in range(equal + slowed)]
        for kind in kinds:
            if time.monotonic() > until:
                break
            start = time.monotonic()
            found = await bench.evaluate(workload, spec, extra if kind is Kind.SLOWED else 0)
            self.trials.append(trial(workload.name, kind, found, time.monotonic() - start))
            for speedup in found.speedups:
                self.delta = speedup.delta_ppm / PPM
        mine = Counter(f"{one.kind.value} {one.outcome.value}" for one in self.trials if one.operator == workload.name)
        tell(f"{workload.name}: {dict(mine)}, {time.monotonic() - begin:.0f} s")


def page(done: Experiment, chip: str, command: str, planned: int, seconds: float) -> str:
    """Markdown."""
    missing = planned - len(done.trials)
    lines = [
        f"# Equal kernels on `{chip}`, and kernels slowed by 2 %",
        "",
        "The operator's reference is a kernel and the candidate is that kernel, or it with more work. A trial is one",
        "SEARCH evaluation of the product, with build and checks, without the repetitions that a noisy moment gets.",
        "*Faster* means that the interval lies above 1 by more than the worker's noise floor, *slower* that it lies",
        "below 1. Rates are of the trials that were not NOISY, with exact 95 % intervals (Clopper, Pearson).",
        "",
        *headlines(done.trials),
        "",
        f"- Command: `{command}`",
        f"- Machine: {machine()}; {datetime.now(UTC):%Y-%m-%d}",
        f"- Noise floor of the worker: {100 * done.delta:.2f} %",
        f"- {seconds:.0f} s in all; a trial took {_median([one.seconds for one in done.trials]):.1f} s (median)",
        *([f"- **{missing} trials of the plan were not made**"] if missing > 0 else []),
        "",
        "Ratios are the baseline's time over the kernel's, medians of the trials: what they differ from 1 where",
        "kernels are equal is what the two ways of timing differ by.",
        "",
        "| operator | equal | faster | slower | NOISY | ratio | largest | rounds | slowdown | its ratio | seen |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *by_operator(done.trials, done.slowdowns),
    ]
    odd = Counter((one.operator, one.kind.value, one.said) for one in done.trials if one.wrong)
    if odd:
        lines += ["", "What the wrong claims said:", ""]
        lines += [f"- {name}, {kind}: {said or 'faster or slower'} ({n})" for (name, kind, said), n in odd.items()]
    return "\n".join(lines) + "\n"


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else math.nan


@click.command()
@click.option("--chip", default="nvidia-sm_90", show_default=True)
@click.option("--equal", default=210, show_default=True, help="Trials of equal kernels, over all operators.")
@click.option("--slowed", default=60, show_default=True, help="Trials with 2 % more work.")
@click.option("--only", default="softmax,row_sum,swish", show_default=True, help="Comma-separated names.")
@click.option("--seconds", default=1500.0, show_default=True, help="For everything; fewer trials when it is too short.")
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Folder of the page and its numbers.")
def main(chip: str, equal: int, slowed: int, only: str, seconds: float, results: Path) -> None:
    """Run the experiment, print its page and write it."""
    names = [name for name in only.split(",") if name]
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown or not names:
        raise click.ClickException(f"no workload `{', '.join(unknown)}`; there are {', '.join(WORKLOADS)}")
    settings = replace(from_env(os.environ), chip=chip)
    settings = replace(settings, policy=replace(settings.policy, library_kernels=LibraryKernels.ALLOW.value))
    settings = replace(settings, timing=replace(settings.timing, noisy_tries=1))
    workloads, begin = [WORKLOADS[name] for name in names], time.monotonic()
    assert {one.language for one in workloads} <= set(LANGUAGES), "hosted ones"
    done = Experiment(workloads, equal, slowed, seconds)

    def tell(text: str) -> None:
        click.echo(f"{datetime.now(UTC):%H:%M:%S} {text}", err=True)

    try:
        asyncio.run(done.run(settings, tell))
    finally:
        command = " ".join(["python -m tests.bench.gpu_aa", *sys.argv[1:]])
        text = page(done, chip, command, equal + slowed, time.monotonic() - begin)
        click.echo(text)
        if done.trials:
            results.mkdir(parents=True, exist_ok=True)
            (results / f"aa-{chip}.md").write_text(text)
            plain = {"command": command, "trials": [asdict(one) for one in done.trials]}
            (results / f"aa-{chip}.json").write_text(json.dumps(plain, indent=1) + "\n")


if __name__ == "__main__":
    main()
