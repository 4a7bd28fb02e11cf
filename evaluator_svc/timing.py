"""Timing: interleaved blocks of candidate, eager and compiled, every one on values the candidate has not seen before.

One block: new inputs are written (for the candidate with random last bits, so that they are new even when their case is
not), outputs poisoned, one call made (its *fresh* time), outputs poisoned again, then a
block of calls timed by the controller's clock and its outputs verified. A round has two blocks of every contestant, in
an order drawn for the round and then in its reverse (A B C C B A): see ``statistics``.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evaluator_svc.baselines import Baselines
from evaluator_svc.cases import Case
from evaluator_svc.correctness import Launcher, unequal
from evaluator_svc.judge import Verdict, judge, within
from evaluator_svc.ledger import Call, Ledger, Stage
from evaluator_svc.oracle import new_seed
from evaluator_svc.poison import Poison
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Ran
from evaluator_svc.sequential import Decision, Stopping
from evaluator_svc.settings import TimingSettings
from evaluator_svc.statistics import log_ratios
from shared.events import Entry, Status

CANDIDATE = "candidate"
CALLS_MAX = 4096
BASELINE_BLOCK_S = 120.0
"""For one block of a baseline; beyond it the baseline's process counts as lost."""


@dataclass(kw_only=True)
class Samples:
    """Times of one contestant: ns per call by block, two blocks a round, and of the first call on fresh values."""

    calls: int = 1
    block_ns: list[float] = field(default_factory=list)
    fresh_ns: list[float] = field(default_factory=list)
    cold_ns: list[float] = field(default_factory=list)

    @property
    def median_ns(self) -> float:
        return statistics.median(self.block_ns) if self.block_ns else 0.0


@dataclass(kw_only=True)
class Measured:
    """What one process' rounds gave. ``clocks``: (controller's ns, runner's ns) of every candidate block."""

    samples: dict[str, Samples]
    clocks: list[tuple[int, int]] = field(default_factory=list)
    verified: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    decision: Decision | None = None
    """Why no more rounds were measured; None after a failure."""
    watched: tuple[Entry, ...] = ()
    """What others did on the machine meanwhile: every signal that there is."""
    disturbed: tuple[Entry, ...] = ()
    """The same, where it was so much that these times say little."""

    def logs(self) -> Mapping[str, Sequence[float]]:
        """Of each baseline: ``log(baseline / candidate)`` by round."""
        mine = self.samples[CANDIDATE].block_ns
        return {name: list(log_ratios(one.block_ns, mine)) for name, one in self.samples.items() if name != CANDIDATE}


class Contest:
    """One candidate against the baselines in one pair of processes."""

    def __init__(
        self,
        runner: Launcher,
        baselines: Baselines,
        cases: Sequence[Case],
        poison: Poison,
        settings: TimingSettings,
        *,
        call_s: float,
        answers: Sequence[bytes],
        ledger: Ledger,
        process: int,
    ) -> None:
        """``answers``: what the kernel gave for the first of ``cases`` in another process; this one is ``process``."""
        self._ledger, self._process = ledger, process
        self._runner, self._baselines, self._poison = runner, baselines, poison
        self._answers = answers
        self._cases, self._settings, self._call_s = cases, settings, call_s
        self._draw = random.Random(new_seed())  # noqa: S311 - seeded from the operating system, order only
        self._names = (CANDIDATE, *baselines.names)
        self._measured = Measured(samples={name: Samples() for name in self._names})

    async def measure(self, stopping: Stopping) -> Measured:
        """Measure rounds until ``stopping`` has decided, or an output is wrong, or the runner dead."""
        if not await self._warm_up():
            return self._measured
        order = list(self._names)
        while self._measured.decision is None:
            self._draw.shuffle(order)
            for name in (*order, *reversed(order)):
                if not await self._block(name):
                    return self._measured
            self._measured.decision = stopping.look(self._measured.logs())
        return self._measured

    async def cold(self, times: int, evict: Callable[[], None]) -> bool:
        """Single calls after the caches were evicted, of every contestant."""
        for _ in range(times):
            for name in self._names:
                case = self._fresh_inputs(name)
                evict()
                elapsed = await self._call(name, 1, Stage.COLD, case)
                if elapsed is None or (name == CANDIDATE and not await self._verify(case)):
                    return False
                self._measured.samples[name].cold_ns.append(elapsed)
        return True

    async def _warm_up(self) -> bool:
        """Touch everything once, compare with the process that was checked, and size the blocks."""
        if not await self._repeats():
            return False
        for name in self._names:
            case = self._fresh_inputs(name)
            for calls in (1, 1):
                elapsed = await self._call(name, calls, Stage.WARM_UP, case)
                if elapsed is None:
                    return False
            wanted = round(self._settings.block_ns / max(elapsed or 1, 1))
            calls = max(1, min(CALLS_MAX, wanted))
            # A short call is mostly overhead of the round trip: size it again from a block.
            elapsed = await self._call(name, calls, Stage.WARM_UP, case)
            if elapsed is None:
                return False
            self._measured.samples[name].calls = max(
                1, min(CALLS_MAX, round(self._settings.block_ns * calls / max(elapsed, 1)))
            )
        return True

    async def _repeats(self) -> bool:
        """Whether this process gives the bytes that the checked one gave."""
        case = self._cases[0]
        self._load(case)
        if await self._call(CANDIDATE, 1, Stage.WARM_UP, case) is None:
            return False
        given = [self._runner.output_bytes(0, output) for output in range(len(self._answers))]
        differs = unequal(case, self._answers, given, "two processes give different results on equal inputs")
        if differs is not None:
            self._fail(differs)
        return differs is None

    async def _block(self, name: str) -> bool:
        samples = self._measured.samples[name]
        case = self._fresh_inputs(name)
        fresh = await self._call(name, 1, Stage.FRESH, case)
        if fresh is None:
            return False
        if name == CANDIDATE:
            self._stain(case)
        elapsed = await self._call(name, samples.calls, Stage.BLOCK, case)
        if elapsed is None or (name == CANDIDATE and not await self._verify(case)):
            return False
        samples.fresh_ns.append(fresh)
        samples.block_ns.append(elapsed / samples.calls)
        return True

    def _fresh_inputs(self, name: str) -> Case:
        case = self._draw.choice(self._cases)
        if name == CANDIDATE:
            self._load(case)
            self._nudge(case)
        else:
            self._baselines.write_inputs(case.inputs)
        return case

    def _nudge(self, case: Case) -> None:
        """Make the candidate's inputs new: no kernel has an answer to these bytes in store."""
        for index, spec in enumerate(case.specs):
            self._poison.nudge(self._runner.input_bytes(0, index), spec.dtype)

    def _load(self, case: Case) -> None:
        for index, data in enumerate(case.inputs):
            self._runner.write_input(0, index, data)
        self._stain(case)

    def _stain(self, case: Case) -> None:
        for output in range(len(case.references)):
            self._poison.apply(self._runner.output_bytes(0, output))

    async def _call(self, name: str, calls: int, stage: Stage, case: Case) -> float | None:
        """Elapsed ns of ``calls`` calls by the controller's clock; None after the candidate failed."""
        if name != CANDIDATE:
            elapsed = await self._baselines.run(name, calls, timeout_s=BASELINE_BLOCK_S)
            self._record(name, stage, case, calls, elapsed)
            return elapsed
        # Blocks are sized to milliseconds, or to one call: the limit of one call serves both.
        ran = await self._runner.run(calls, 0, self._call_s)
        if isinstance(ran, RunFailure):
            self._fail(Verdict(status=ran.status, evidence=ran.evidence))
            return None
        if ran.return_code != 0:
            self._fail(Verdict(status=Status.RUNTIME_ERROR, evidence=(_entry("return_code", ran.return_code),)))
            return None
        self._record(name, stage, case, calls, ran.elapsed_ns, ran)
        if stage is Stage.BLOCK:
            self._measured.clocks.append((ran.elapsed_ns, ran.runner_ns))
        return ran.elapsed_ns

    def _record(
        self, name: str, stage: Stage, case: Case, calls: int, elapsed: float | None, ran: Ran | None = None
    ) -> None:
        if elapsed is None:
            return
        self._ledger.call(
            Call(
                stage=stage,
                process=self._process,
                contestant=name,
                case=case.name,
                calls=calls,
                controller_ns=round(elapsed),
                runner_ns=ran.runner_ns if ran else None,
                cpu_ns=ran.cpu_ns if ran else None,
            )
        )

    async def _verify(self, case: Case) -> bool:
        """The outputs of the block just timed, against the case it ran on."""
        self._measured.verified += 1
        overrun = self._runner.slack_intact()
        if overrun is not None:
            evidence = (_entry("reason", "wrote outside its outputs while timed"), _entry("where", overrun))
            self._fail(Verdict(status=Status.RUNTIME_ERROR, evidence=evidence))
            return False
        if self._wrong(case) is None:
            return True
        # A last bit may decide a comparison in the operator: what counts is the answer on the case's very inputs.
        self._load(case)
        if await self._call(CANDIDATE, 1, Stage.CHECK, case) is None:
            return False
        wrong = self._wrong(case)
        if wrong is not None:
            self._fail(Verdict(status=wrong.status, evidence=(*wrong.evidence, _entry("case", "a timed call"))))
        return wrong is None

    def _wrong(self, case: Case) -> Verdict | None:
        """The first output that does not pass, if any."""
        for output, reference in enumerate(case.references):
            data = self._runner.output_bytes(0, output)
            if within(reference, data):
                continue
            verdict = judge(reference, data)
            if not verdict.passed:
                return verdict
        return None

    def _fail(self, verdict: Verdict) -> None:
        self._measured.verdict = verdict


def _entry(name: str, value: object) -> Entry:
    return Entry(name=name, value=str(value))
