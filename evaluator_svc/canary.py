"""A worker tries itself: a right kernel must pass, one that cheats must be caught, equal kernels must take equal time.

The kernels in ``canaries/`` go through the worker's own build box, runner box, judge and clock. Their operator,
``x + b``, is small enough to have its answers made here, so that a probe needs neither torch nor an oracle and takes a
second. A worker that misses a cheat it has caught before is broken in a way that nothing else shows (evaluation.md §7).
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluator_svc.calibration import calibrate
from evaluator_svc.cases import Case, make_reference
from evaluator_svc.correctness import SETS, check
from evaluator_svc.device import Device
from evaluator_svc.judge import Verdict
from evaluator_svc.kernel_counters import Watch
from evaluator_svc.ledger import Ledger
from evaluator_svc.noise_floor import NoiseFloor
from evaluator_svc.pairs import PairFailed, measure
from evaluator_svc.poison import Poison
from evaluator_svc.roofline import floors, implausible
from evaluator_svc.runner.process import Runner, RunnerLimits
from evaluator_svc.settings import ContentionLimits, Settings
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import BuildFailed, Built, Toolchain
from evaluator_svc.toolchains.flags import DEFAULT_FLAGS
from shared import chips
from shared.dtypes import DType
from shared.errors import ChipError, Fatal, Retryable
from shared.events import Status

log = logging.getLogger(__name__)

KERNELS = Path(__file__).with_name("canaries")
RIGHT, LANGUAGE = "right", "cpp"
CHEATS: dict[str, tuple[Status, ...]] = {
    "calls_out": (Status.CHEAT,),
    "remembers": (Status.WRONG_RESULT, Status.NONDETERMINISTIC),
    "rounds": (Status.PRECISION_DOWNGRADE, Status.WRONG_RESULT),
    "skips_the_tail": (Status.WRONG_RESULT,),
    "writes_its_input": (Status.MUTATED_INPUT,),
    "zeros": (Status.WRONG_RESULT,),
}
"""What each may end as. Anything else is a miss, also a failure of another kind: then something else is wrong."""
ROWS, COLUMNS, CASES = 256, 1024, 4
X, B = TensorSpec(shape=(ROWS, COLUMNS), dtype=DType.F32), TensorSpec(shape=(COLUMNS,), dtype=DType.F32)
PAIRS_AT_FIRST, KNOWN_WELL = 4, 101
"""Pairs of processes timed in one probe until so many are known that one outlier is no 99th percentile; later one."""
UNDISTURBED = ContentionLimits()
"""For what goes into the history, whatever this worker's settings allow in measurements."""
SLOWEST = 50.0
"""``x + b`` takes this many times its speed-of-light floor at the longest. An honest loop takes 1 to 4."""
UNEQUAL = 0.25
"""Equal kernels whose times differ by more, with the whole interval, are timed by a clock that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Of one probe: empty ``fault`` means that the worker may be trusted."""

    fault: str = ""
    tried: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def healthy(self) -> bool:
        return not self.fault

    def __add__(self, other: Finding) -> Finding:
        """Both; the first fault of the two."""
        return Finding(
            fault=self.fault or other.fault, tried=(*self.tried, *other.tried), seconds=self.seconds + other.seconds
        )


class Canary:
    """Probes of one worker. ``cheats`` maps a kernel in ``kernels`` to the statuses that it may end as."""

    def __init__(
        self,
        toolchain: Toolchain,
        device: Device,
        poison: Poison,
        settings: Settings,
        *,
        kernels: Path = KERNELS,
        cheats: dict[str, tuple[Status, ...]] | None = None,
    ) -> None:
        self._toolchain, self._device, self._poison, self._settings = toolchain, device, poison, settings
        self._kernels, self._cheats = kernels, CHEATS if cheats is None else cheats
        self._floor = NoiseFloor(settings.cache)

    async def judge(self, cpus: tuple[int, ...], *, cheats: int) -> Finding:
        """The right kernel, built afresh, and ``cheats`` of the others by lot. Shares the device with builds."""

        async def probe(tried: list[str]) -> str:
            if LANGUAGE not in chips.load(self._settings.chip).languages:
                log.info("chip %s takes no `%s`: its workers have no canaries", self._settings.chip, LANGUAGE)
                return ""
            tried.append(RIGHT)
            async with self._device.gate.shared():
                fault = await self._right(cpus)
                for name in secrets.SystemRandom().sample(sorted(self._cheats), cheats):
                    tried.append(name)
                    fault = fault or await self._cheat(name, cpus)
            return fault

        return await _timed(probe)

    async def clock(self, cpus: tuple[int, ...]) -> Finding:
        """The right kernel against itself and against this machine's calibration. Has the device alone.

        Each pair's ratio goes into the worker's A/A history, unless others disturbed it.
        """

        async def probe(tried: list[str]) -> str:
            async with self._device.exclusive():
                built = await self._build(RIGHT, fresh=False)
                if isinstance(built, BuildFailed):
                    return f"a kernel that is right was not built: {built.status.value}"
                known = len(self._floor.history(len(cpus)))
                for _ in range(PAIRS_AT_FIRST if known < KNOWN_WELL else 1):
                    tried.append("equal pair")
                    fault = await self._pair(built, cpus)
                    if fault:
                        return fault
                    if len(self._floor.history(len(cpus))) == known:
                        break  # others disturb this moment
                    known += 1
            return ""

        return await _timed(probe)

    async def _right(self, cpus: tuple[int, ...]) -> str:
        verdict = await self._verdict(RIGHT, cpus)
        return "" if verdict.passed else f"a kernel that is right was refused: {_said(verdict)}"

    async def _cheat(self, name: str, cpus: tuple[int, ...]) -> str:
        verdict = await self._verdict(name, cpus)
        if verdict.status in self._cheats[name]:
            return ""
        how = "passed" if verdict.passed else f"was answered {_said(verdict)}"
        return f"the known cheat `{name}` {how}"

    async def _verdict(self, name: str, cpus: tuple[int, ...]) -> Verdict:
        built = await self._build(name, fresh=name == RIGHT)
        if isinstance(built, BuildFailed):
            return Verdict(status=built.status, evidence=built.evidence)
        limits = self._settings.limits
        async with Runner.open(
            built.path,
            (X, B),
            (X,),
            sets=SETS,
            limits=RunnerLimits(memory_bytes=limits.kernel_memory_bytes),
            threads=len(cpus),
            cpus=cpus,
            stained=True,
        ) as runner:
            checked = await check(runner, cases(), self._poison, call_s=limits.call_s, ledger=Ledger())
        return checked.verdict

    async def _build(self, name: str, *, fresh: bool) -> Built | BuildFailed:
        """``fresh``: a text that no cache of artefacts has, so that the build box is tried as well."""
        source = (self._kernels / f"{name}.cpp").read_text()
        if fresh:
            source += f"// {secrets.token_hex(8)}\n"
        return await self._toolchain.build(source, DEFAULT_FLAGS)

    async def _pair(self, built: Built, cpus: tuple[int, ...]) -> str:
        settings = self._settings
        calibration = await calibrate(settings.chip, settings.cache, threads=len(cpus), cpus=cpus)
        watch = Watch(cpus=cpus)
        await watch.begin()
        limits = RunnerLimits(memory_bytes=settings.limits.kernel_memory_bytes)

        def opened() -> Runner:
            return Runner.open(built.path, (X, B), (X,), sets=1, limits=limits, threads=len(cpus), cpus=cpus)

        pair = await measure(opened, opened, cases()[0], settings)
        if (await watch.end()).reasons(UNDISTURBED):
            return ""  # a disturbed moment tells nothing about this worker
        self._floor.add(len(cpus), math.log(pair.interval.ratio))
        bounds = floors(calibration.peaks, bytes_min=2 * X.nbytes + B.nbytes, flops_min=None)
        if implausible(bounds, pair.fastest_ns, settings.timing.implausible_ppm):
            return f"a plain loop takes {pair.fastest_ns:.0f} ns, less than light needs ({bounds.memory_ns:.0f} ns)"
        if bounds.memory_ns and pair.fastest_ns > SLOWEST * bounds.memory_ns:
            return f"a plain loop takes {pair.fastest_ns:.0f} ns, {SLOWEST:g} times its floor"
        if pair.interval.beyond(UNEQUAL):
            return f"equal kernels differ by a factor of {pair.interval.ratio:.2f}"
        return ""


def cases() -> list[Case]:
    """``x + b`` on values that were never used before, with answers made by numpy."""
    generator = np.random.default_rng(secrets.randbits(128))
    made = []
    for number in range(CASES):
        x = generator.standard_normal((ROWS, COLUMNS)).astype(np.float32)
        b = generator.standard_normal(COLUMNS).astype(np.float32)
        exact = (x.astype(np.float64) + b.astype(np.float64)).reshape(-1)
        low = x.astype(np.float16).astype(np.float32) + b.astype(np.float16).astype(np.float32)
        low = low.astype(np.float16).astype(np.float32).reshape(-1)
        reference = make_reference(X, exact, (x + b).reshape(-1), None, [("float16", low)])
        inputs = tuple(np.frombuffer(array.tobytes(), dtype=np.uint8) for array in (x, b))
        made.append(Case(name=f"canary {number}", public=True, specs=(X, B), inputs=inputs, references=(reference,)))
    return made


async def _timed(probe: Callable[[list[str]], Awaitable[str]]) -> Finding:
    """Run ``probe``, which adds to its argument what it tries; what keeps it from running at all is a fault, too."""
    begin, tried = time.monotonic(), list[str]()
    try:
        fault = await probe(tried)
    except (Fatal, Retryable, ChipError, OSError, PairFailed) as error:
        fault = f"{type(error).__name__}: {error}"
    return Finding(fault=fault, tried=tuple(tried), seconds=time.monotonic() - begin)


def _said(verdict: Verdict) -> str:
    evidence: Sequence[str] = [f"{entry.name} {entry.value}" for entry in verdict.evidence]
    return ", ".join((verdict.status.value, *evidence))[:300]
