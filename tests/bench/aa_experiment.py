"""The trials of the A/A experiment: what is planned, and how each is made."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator_svc.canary import Canary
from evaluator_svc.cases import Suite
from evaluator_svc.claims import Claim
from evaluator_svc.device import Device
from evaluator_svc.evaluators import toolchain_of
from evaluator_svc.launchers import Launchers
from evaluator_svc.ledger import Ledger
from evaluator_svc.measuring import Measurer, Subject
from evaluator_svc.noise_floor import NoiseFloor
from evaluator_svc.poison import Poison
from evaluator_svc.samples import CANDIDATE
from evaluator_svc.settings import Settings
from evaluator_svc.stages import Stopwatch
from evaluator_svc.statistics import log_ratios, sequence
from evaluator_svc.target import target_of
from evaluator_svc.toolchains import Built, Toolchain
from evaluator_svc.trusted_child import TrustedChild
from shared import operators
from shared.errors import Retryable
from shared.operators import OperatorSpec
from shared.ports import Ports
from tests.bench.aa_bench import Bench
from tests.bench.aa_kernels import Draft, Kernels, Slowdown, built, call_ns, drafts, prepared
from tests.bench.aa_report import Group, Kind, Outcome, Trial, outcome
from tests.bench.aa_twin import TWIN, Twin
from tests.bench.compilers import compilers

CHIP = "cpu-x86_64"
SLOWDOWN = 0.02
PAIRS, PROBES_MAX = 40, 20
"""Of equal kernels, from which the worker knows its noise before the first trial; and probes, of four pairs each where
nobody disturbs them.
"""
FRACTION_BUSY = 0.2
"""Of the time that is left to an operator, for its busy part."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Trials in all, over the operators in ``files``; ``seconds`` bounds the whole, preparations included."""

    files: tuple[Path, ...]
    equal: int
    slowed: int
    final: int
    busy: int
    seconds: float

    def of(self, index: int, total: int) -> int:
        """The share of ``total`` of the operator at ``index``: the first ones get what cannot be divided."""
        return total // len(self.files) + (index < total % len(self.files))

    def groups(self) -> Counter[Group]:
        """How many trials of each group there are to be."""
        quiet = {Kind.EQUAL: self.equal, Kind.SLOWED: self.slowed, Kind.FINAL: self.final}
        planned = Counter({(kind, False): count for kind, count in quiet.items()})
        return planned + Counter({(kind, True): self.busy for kind in (Kind.EQUAL, Kind.SLOWED)})


@dataclass(frozen=True, kw_only=True)
class Worker:
    """What of an evaluator the trials need."""

    settings: Settings
    toolchain: Toolchain
    device: Device
    measurer: Measurer
    canary: Canary
    oracle: TrustedChild
    cpus: tuple[int, ...]


@asynccontextmanager
async def worker(ports: Ports, settings: Settings) -> AsyncIterator[Worker]:
    """On the last core, as the product measures with one thread. What it knows of this machine, calibration and noise,
    it measures itself: a history of busier hours would raise the gain that a claim must exceed.
    """
    toolchain, poison, target = toolchain_of(CHIP), Poison(), target_of(CHIP)
    device = Device(
        ports.cache.leases,
        settings.cache / f"device-{target.device}.lock",
        name=target.device,
        owner=f"{os.getpid()}-{secrets.token_hex(4)}",
        lease_s=settings.limits.lease_s,
        wait_s=settings.limits.device_wait_s,
    )
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    async with AsyncExitStack() as stack:
        known = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ke-aa-")))
        settings = replace(settings, timing=replace(settings.timing, noisy_tries=1), chip=CHIP, cache=known)
        launchers = Launchers(target)
        stack.callback(launchers.close)
        oracle = TrustedChild("oracle", cpus=(), environment=threads, where="the experiment")
        yield Worker(
            settings=settings,
            toolchain=toolchain,
            device=device,
            measurer=Measurer(device, poison, settings, launchers),
            canary=Canary(toolchain, device, poison, settings),
            oracle=await stack.enter_async_context(oracle),
            cpus=(max(os.sched_getaffinity(0)),),
        )


class Experiment:
    """Runs a plan. ``trials``, ``slowdowns`` (by operator), ``prepared_s``, and ``delta``, the worker's noise floor, of
    so many ``pairs``, are what there is so far, also after an interruption.
    """

    def __init__(self, plan: Plan, tell: Callable[[str], None]) -> None:
        self._plan, self._tell = plan, tell
        self.trials: list[Trial] = []
        self.slowdowns: dict[str, Slowdown] = {}
        self.prepared_s: list[float] = []
        self.delta, self.pairs = float("nan"), 0
        self._until = time.monotonic() + plan.seconds

    async def run(self, worker: Worker) -> None:
        """Every operator in turn."""
        begin = time.monotonic()
        texts = await asyncio.to_thread(drafts, self._plan.files, CHIP)
        self._tell(f"{len(texts)} drafts after {time.monotonic() - begin:.0f} s")
        self.delta, self.pairs = await _noise(worker)
        self._tell(f"noise floor {100 * self.delta:.2f} % of {self.pairs} pairs, {time.monotonic() - begin:.0f} s")
        for index, (file, draft) in enumerate(zip(self._plan.files, texts, strict=True)):
            share = max(0.0, self._until - time.monotonic()) / (len(self._plan.files) - index)
            await self._operator(worker, operators.load(file), draft, index, time.monotonic() + share)

    async def _operator(self, worker: Worker, spec: OperatorSpec, draft: Draft, index: int, until: float) -> None:
        name, plan, begin = spec.ref.name, self._plan, time.monotonic()
        bench = Bench(worker.oracle, spec, worker.cpus, worker.settings, target_of(CHIP))
        with tempfile.TemporaryDirectory(prefix="ke-aa-") as place:
            try:
                marked, (suite, _), _ = await asyncio.gather(
                    built(draft, worker.toolchain), bench.suite(), bench.pool()
                )
                folder, pair = Path(place), _Pair(worker, bench, suite)
                async with worker.device.exclusive():
                    guess = await call_ns(marked, suite, worker.settings, worker.cpus, place=folder)
                kernels = await prepared(marked, guess, pair.slower, slowdown=SLOWDOWN, place=folder)
                self.slowdowns[name] = kernels.slowdown
                self.prepared_s.append(time.monotonic() - begin)
                self._tell(f"{name}: prepared in {self.prepared_s[-1]:.1f} s, slowed by {kernels.slowdown}")
                quiet = [Kind.EQUAL] * plan.of(index, plan.equal) + [Kind.SLOWED] * plan.of(index, plan.slowed)
                busy = [Kind.EQUAL] * plan.of(index, plan.busy) + [Kind.SLOWED] * plan.of(index, plan.busy)
                end_of_quiet = until - FRACTION_BUSY * (until - time.monotonic()) if busy else until
                some = _Some(self.trials, pair, kernels)
                await some.make(_interleaved(quiet) + [Kind.FINAL] * plan.of(index, plan.final), end_of_quiet)
                if busy:
                    with compilers(os.cpu_count() or 1):
                        await some.make(_interleaved(busy), until, busy=True)
            finally:
                await bench.close()
        self._tell(f"{name}: {_counts([one for one in self.trials if one.operator == name])}")


class _Pair:
    """Measures one kernel of an operator against another, which stands in the place of the baselines."""

    def __init__(self, worker: Worker, bench: Bench, suite: Suite) -> None:
        self._measurer, self._bench, self._suite = worker.measurer, bench, suite
        self.operator = bench.operator.name

    async def claim(self, kernel: Built, twin: Built, *, final: bool = False) -> Claim:
        """What the product claims of ``kernel``."""
        async with Twin(twin, self._suite, self._bench.cpus) as against:
            subject = Subject(
                built=kernel,
                suite=self._suite,
                bench=self._bench,
                baselines=against,  # type: ignore[arg-type] - what a contest needs of them
                answers=(),
                final=final,
                ledger=Ledger(),
            )
            return await self._measurer.measure(subject, Stopwatch())

    async def slower(self, kernel: Built, twin: Built) -> float:
        """By which share of its time ``kernel`` is slower than ``twin``, whatever may be claimed of that.

        Raises:
            RuntimeError: a kernel that is right was refused.
        """
        claim = await self.claim(kernel, twin)
        blocks = {timing.name: timing.block_ns for timing in claim.timings}
        if not blocks:
            raise RuntimeError(f"{self.operator}: {claim.status.value}, {claim.evidence}")
        return sequence(log_ratios(blocks[CANDIDATE], blocks[TWIN])).ratio - 1.0


class _Some:
    """Trials of one operator, added to ``trials``."""

    def __init__(self, trials: list[Trial], pair: _Pair, kernels: Kernels) -> None:
        self._trials, self._pair, self._kernels = trials, pair, kernels

    async def make(self, kinds: list[Kind], until: float, *, busy: bool = False) -> None:
        """One of each kind even when time is up, so that no operator is left out; but none as long as a final one."""
        for number, kind in enumerate(kinds):
            if time.monotonic() < until or (kind not in kinds[:number] and kind is not Kind.FINAL):
                self._trials.append(await self._trial(kind, busy=busy))

    async def _trial(self, kind: Kind, *, busy: bool) -> Trial:
        kernels, begin = self._kernels, time.monotonic()
        kernel = kernels.slow if kind is Kind.SLOWED else kernels.normal
        claim = await self._pair.claim(kernel, kernels.normal, final=kind is Kind.FINAL)
        word, ratio = outcome(claim.status, next(iter(claim.speedups), None))
        rounds = next((len(one.block_ns) // 2 for one in claim.timings if one.name == TWIN), 0)
        said = "; ".join(f"{entry.name}: {entry.value}" for entry in claim.evidence)
        expected = word is (Outcome.SLOWER if kind is Kind.SLOWED else Outcome.UNDECIDED)
        return Trial(
            operator=self._pair.operator,
            kind=kind,
            busy=busy,
            outcome=word,
            log_ratio=ratio,
            rounds=rounds,
            seconds=time.monotonic() - begin,
            said="" if expected else said[:400],
        )


async def _noise(worker: Worker) -> tuple[float, int]:
    """The worker's noise floor, and how many equal pairs it comes from.

    Raises:
        Retryable: the worker fails its own probe.
    """
    history, threads = NoiseFloor(worker.settings.cache), len(worker.cpus)
    for _ in range(PROBES_MAX):
        if len(history.history(threads)) >= PAIRS:
            break
        found = await worker.canary.clock(worker.cpus)
        if not found.healthy:
            raise Retryable(f"this worker fails its own probe: {found.fault}")
    return history.delta(threads), len(history.history(threads))


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


def _counts(trials: list[Trial]) -> str:
    parts = []
    for busy in (False, True):
        for kind in Kind:
            words = Counter(one.outcome.value for one in trials if one.kind is kind and one.busy is busy)
            if words:
                counted = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
                parts.append(f"{kind.value}{', compilers beside' if busy else ''}: {counted}")
    return "; ".join(parts) + f" ({sum(one.seconds for one in trials):.0f} s)"
