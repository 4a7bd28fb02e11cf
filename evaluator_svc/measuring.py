"""The timing stage: the device alone, fresh processes, and what the measurement allows to be claimed."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from evaluator_svc import gpu_calibration, off_calls
from evaluator_svc.arrays import Bytes
from evaluator_svc.baselines import Baselines
from evaluator_svc.block_sets import sets_for
from evaluator_svc.calibration import Calibration, calibrate
from evaluator_svc.cases import Suite
from evaluator_svc.claims import Claim, Physics, claim
from evaluator_svc.device import Device
from evaluator_svc.emulated.process import EmulatedRunner
from evaluator_svc.eviction import Evictor
from evaluator_svc.external.process import ExternalRunner
from evaluator_svc.freshness import Fresh
from evaluator_svc.gpu_watch import DeviceWatch
from evaluator_svc.kernel_counters import Watch, until_quiet
from evaluator_svc.launchers import Launched, Launchers
from evaluator_svc.ledger import Ledger
from evaluator_svc.noise_floor import NoiseFloor
from evaluator_svc.oracle import new_seed
from evaluator_svc.poison import Poison
from evaluator_svc.roofline import Peaks, floors
from evaluator_svc.runner.ending import ACCUSATIONS_CONFIRMED, accuses_by_times
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.sequential import Stopping
from evaluator_svc.settings import Settings
from evaluator_svc.stages import Stopwatch
from evaluator_svc.timing import Contest, Measured
from evaluator_svc.toolchains import Built
from evaluator_svc.workbench import Workbench
from shared.errors import Retryable
from shared.events import Entry, Status, Trust

FINAL_COLD_CALLS = 3
RECALIBRATIONS_MAX = 4
"""Of a worker, for peaks that kernels beat: each takes seconds."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A built kernel that passed the correctness stage, with what it is timed on."""

    built: Built
    suite: Suite
    bench: Workbench
    baselines: Baselines
    answers: tuple[Bytes, ...]
    """What it gave for the suite's first case."""
    final: bool
    ledger: Ledger
    expected_ns: float = 0.0
    """A call took this when it was checked; 0 where that is not known."""
    pool: tuple[Fresh, ...] = ()
    """Values for its timed calls; empty: those of the workbench."""
    processes: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """Numbers the fresh processes it is timed in."""


@dataclass(slots=True, kw_only=True)
class Started:
    """A candidate's process that is there, but has not been timed. ``close`` ends it, also when it was timed, and
    returns when it is gone, whoever asked first.
    """

    runner: Launched
    stack: AsyncExitStack
    ended: bool = False
    _closing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def close(self) -> None:
        async with self._closing:
            self.ended = True
            await self.stack.aclose()


class Measurer:
    """Times kernels, one at a time."""

    def __init__(self, device: Device, poison: Poison, settings: Settings, launchers: Launchers) -> None:
        self._device, self._poison, self._settings, self._launchers = device, poison, settings, launchers
        self._calibrations: dict[int, Calibration] = {}
        self._evict, self._floor = Evictor(), NoiseFloor(settings.cache)
        self._streak, self._recalibrations = 0, 0
        """Noisy verdicts in a row."""
        self._off_calls_ns: float | None = None
        self._known: set[int] = set()
        """Numbers of threads for which this worker has measured its device,"""
        self._starting = False
        self._waiting: Started | None = None
        """and what ``start`` gave last."""

    async def start(self, subject: Subject) -> Started | None:
        """A process of ``subject`` to be timed first, started while the device is shared: it is loaded and warmed up
        on the GPU, and then stands still. What it left to its device goes on all the same, so there is one at a time;
        None where another one waits, or where this worker has yet to measure the device itself.

        Raises:
            Retryable: it was lost, or the device has no memory now.
            Fatal: it did not start.
        """
        waits = self._waiting is not None and not self._waiting.ended
        if self._starting or waits or subject.bench.threads not in self._known:
            return None
        self._starting = True
        try:
            self._waiting = await self._begun(subject)
        finally:
            self._starting = False
        return self._waiting

    async def measure(self, subject: Subject, watch: Stopwatch, started: Started | None = None) -> Claim:
        """The claim the measurement supports; ``started`` is what is timed first.

        Raises:
            Retryable: the device was not free, or was lost meanwhile.
        """
        async with AsyncExitStack() as stack:
            with watch.span("wait"):
                token = await stack.enter_async_context(self._device.exclusive())
            with watch.span("timing"):
                if self._waiting is not None and self._waiting is not started:
                    await self._waiting.close()  # its device's work would be in these times, or be taken for this one's
                if started is not None and started.ended:
                    started = None
                if subject.final:
                    subject = replace(subject, pool=await subject.bench.fresh_pool(subject.suite))
                made = await self._claim(subject, afresh=False, started=started)
                for _ in range(ACCUSATIONS_CONFIRMED):
                    # What was given for an answer is what it is; times are asked for again.
                    if made.status is not Status.CHEAT or not made.of_times:
                        break
                    # Accuse on the best peaks this machine shows, not on a disturbed calibration.
                    made = await self._claim(subject, afresh=True)
            if not await self._device.held(token):
                raise Retryable("the device's lease was lost while timing")
        return made

    async def _claim(self, subject: Subject, *, afresh: bool, started: Started | None = None) -> Claim:
        """Measured again while the moment is noisy or the clocks disagree, within the limits of the settings."""
        physics, timing = await self._physics(subject, afresh=afresh), self._settings.timing
        threads = subject.bench.threads
        tries = timing.noisy_tries if self._streak < timing.noisy_streak else 1
        until, delta = time.monotonic() + timing.noisy_budget_s, self._floor.delta(subject.bench.threads)
        for left in reversed(range(tries)):
            measured = await self._rounds(subject, started)
            started = None
            failed = next((one.verdict for one in measured if not one.verdict.passed), None)
            if failed is not None:
                return _failed(failed.status, failed.evidence)
            made = claim(measured, timing, physics, new_seed(), threads=threads, delta=delta)
            quiet = made.status is not Status.NOISY and made.clocks_agree
            if quiet or not left or time.monotonic() > until:
                break
            contention = self._settings.contention
            await until_quiet(subject.bench.cpus, contention, most_s=contention.quiet_wait_ms / 1000)
        floor = made.floors.memory_ns if made.floors else 0.0
        if made.status is Status.PASSED and made.median_ns < floor and self._recalibrations < RECALIBRATIONS_MAX:
            # Beaten peaks were measured in a disturbed moment: the better of two calibrations is nearer the truth.
            self._recalibrations += 1
            made = claim(
                measured, timing, await self._physics(subject, afresh=True), new_seed(), threads=threads, delta=delta
            )
        self._streak = self._streak + 1 if made.status is Status.NOISY else 0
        if self._streak:
            said = f"{self._streak} noisy measurements in a row on this machine; this one was tried up to {tries} times"
            made = replace(made, evidence=(*made.evidence, Entry(name="noise", value=said)))
        return made

    async def _rounds(self, subject: Subject, started: Started | None) -> list[Measured]:
        """Each candidate process is fresh: one for a search measurement, several for a final one."""
        timing = self._settings.timing
        if not subject.final:
            return [await self._contest(subject, (timing.rounds, timing.rounds_max), cold_calls=0, started=started)]
        measured: list[Measured] = []
        for _ in range(timing.final_processes):
            rounds = timing.final_rounds, timing.final_rounds_max
            measured.append(await self._contest(subject, rounds, cold_calls=FINAL_COLD_CALLS, started=started))
            started = None
            if not measured[-1].verdict.passed:
                break
        return measured

    async def _begun(self, subject: Subject) -> Started:
        runner = await self._runner(subject)
        stack = AsyncExitStack()
        await stack.enter_async_context(runner)
        return Started(runner=runner, stack=stack)

    async def _runner(self, subject: Subject) -> Launched:
        """One whose calls can be timed."""
        bench, suite, launchers = subject.bench, subject.suite, self._launchers
        held = bench.target.on_gpu and not await asyncio.to_thread(launchers.unkept)
        runner = launchers.open(
            subject.built,
            suite,
            where=bench.operator.name,
            sets=sets_for(
                suite,
                self._settings.timing,
                expected_ns=0.0 if held else subject.expected_ns,  # memory is stained there before a call is checked
                cache_bytes=bench.target.cache_bytes if held else 0,
                memory_bytes=bench.target.memory_bytes if held else 0,
            ),
            spacing=Spacing.DENSE,
            memory_bytes=self._settings.limits.kernel_memory_bytes,
            threads=bench.threads,
            cpus=bench.cpus,
            alone=True,
        )
        assert not isinstance(runner, (EmulatedRunner, ExternalRunner)), "nothing is timed there"
        return runner

    async def _contest(
        self, subject: Subject, rounds: tuple[int, int], *, cold_calls: int, started: Started | None = None
    ) -> Measured:
        """``rounds``: fewest and most."""
        limits, bench, suite = self._settings.limits, subject.bench, subject.suite
        hopeless = self._settings.timing.hopeless_rounds
        delta = self._floor.delta(bench.threads)
        stopping = Stopping(fewest=rounds[0], most=rounds[1], delta=delta, hopeless_rounds=hopeless)
        pool = subject.pool or await bench.pool()  # what is made for it on a device is made by now
        started = started or await self._begun(subject)
        async with AsyncExitStack() as ending:
            ending.push_async_callback(started.close)
            runner = started.runner
            assert not isinstance(runner, (EmulatedRunner, ExternalRunner)), "nothing is timed there"
            contest = Contest(
                runner,
                subject.baselines,
                suite.public[0],
                pool,
                self._poison,
                self._settings.timing,
                call_s=limits.call_s,
                answers=subject.answers,
                settle=bench.settled,
                ledger=subject.ledger,
                process=next(subject.processes),
                contract=suite.contract,
                off_calls_ns=self._off_calls_ns if runner.pipelined else None,
                checked=suite.cases,
            )
            watch, device = Watch(cpus=bench.cpus), DeviceWatch(on=bench.target.on_gpu)
            await watch.begin()
            await device.begin()
            measured = await contest.measure(stopping)
            seen, of_device = await watch.end(), await device.end()
            measured.watched = (seen.entry(self._settings.contention),)
            measured.disturbed = measured.watched if seen.reasons(self._settings.contention) else ()
            measured.watched += of_device.seen
            measured.disturbed += of_device.disturbed
            if measured.verdict.passed and cold_calls and not bench.target.on_gpu:  # there every call is a cold one
                await contest.cold(cold_calls, self._evict)
            return measured

    async def _physics(self, subject: Subject, *, afresh: bool) -> Physics:
        bench = subject.bench
        if afresh or bench.threads not in self._calibrations:
            cache = self._settings.cache
            self._calibrations[bench.threads] = (
                await gpu_calibration.calibrate(cache, afresh=afresh)
                if bench.target.on_gpu
                else await calibrate(self._settings.chip, cache, threads=bench.threads, cpus=bench.cpus, afresh=afresh)
            )
        held = bench.target.on_gpu and not await asyncio.to_thread(self._launchers.unkept)
        if held and (afresh or self._off_calls_ns is None):
            found = await off_calls.measure(self._launchers, bench.target, bench.threads, bench.cpus)
            # In a disturbed moment it is more. Who was measured as too quick is accused on the least there is.
            self._off_calls_ns = found if self._off_calls_ns is None else min(found, self._off_calls_ns)
        self._known.add(bench.threads)
        return physics_of(self._calibrations[bench.threads].peaks, subject.suite)


def physics_of(peaks: Peaks, suite: Suite) -> Physics:
    """The limits a kernel of ``suite`` is held against."""
    return Physics(
        floors=floors(peaks, bytes_min=suite.bytes_min, flops_min=suite.flops),
        written=floors(peaks, bytes_min=sum(spec.nbytes for spec in suite.outputs), flops_min=None),
    )


def _failed(status: Status, evidence: Sequence[Entry]) -> Claim:
    return Claim(
        status=status,
        trust=Trust.NONE,
        timings=(),
        speedups=(),
        evidence=tuple(evidence),
        median_ns=0.0,
        of_times=accuses_by_times(status, evidence),
    )
