"""The simulated chip: it measures nothing. Scores and durations are functions of the kernel's hash.

It is for trying a cluster, and for testing one: equal kernels get equal verdicts whoever evaluates them and however
often, and durations are as uneven as real ones. The environment of every result says what it is.

A kernel whose text holds one of the markers below hurts its worker as a real one can hurt a real worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import signal
from collections.abc import Sequence
from statistics import NormalDist

from evaluator_svc.canary import Finding
from evaluator_svc.settings import HARNESS_VERSION, Settings
from evaluator_svc.stages import Stopwatch
from evaluator_svc.toolchains import BuildFailed, Built
from shared.errors import ChipError
from shared.events import (
    PPM,
    Entry,
    Evaluation,
    EvaluationRequested,
    OperatorRef,
    Speedup,
    Status,
    Timing,
    Trust,
)
from shared.store import Blobs

TOOLCHAIN = "simulated"
"""As the chip sheet names it."""
CRASHES = "ke-simulated: crash"
"""The worker's process dies at once, as by a driver that takes it along."""
HANGS = "ke-simulated: hang"
"""Never ends, whatever it is told, as a hung device."""
STALLS = "ke-simulated: stall"
"""Never ends unless it is told to."""
WARNING = Entry(name="simulated", value="nothing was measured: every number is computed from the kernel's hash")
BASELINE_NS = 1_000_000
FAILURES = (Status.COMPILE_ERROR, Status.WRONG_RESULT, Status.RUNTIME_ERROR, Status.TIMEOUT)
INTERVAL = 0.01
"""Half the width of a speedup's interval, as a share of it."""


class SimulatedEvaluator:
    """See the module."""

    def __init__(self, blobs: Blobs, settings: Settings) -> None:
        self._blobs, self.settings = blobs, settings

    async def admit(self, operator: OperatorRef, threads: int) -> None:
        """Any operator will do: none is run."""

    def environment(self) -> tuple[Entry, ...]:
        """What it is, and by which rules."""
        return (WARNING, Entry(name="harness", value=HARNESS_VERSION))

    async def build(self, source: str, flags: Sequence[str], language: str) -> Built | BuildFailed:  # noqa: ARG002
        """There is nothing to build."""
        raise ChipError("the simulated chip builds nothing")

    async def ready(self) -> None:
        """There is nothing to build or run."""

    async def probe(self, *, thorough: bool) -> Finding:  # noqa: ARG002 - the port's
        """It measures nothing, so there is nothing that could be wrong."""
        return Finding()

    async def close(self) -> None:
        """Nothing is open."""

    async def evaluate(self, request: EvaluationRequested, watch: Stopwatch | None = None) -> Evaluation:
        """The verdict that the kernel's hash says, after the time that it says."""
        watch = watch or Stopwatch()
        try:
            text = (await self._blobs.get(request.kernel.source_hash)).decode("utf-8", "replace")
        except KeyError:
            reason = Entry(name="reason", value=f"the store has no blob {request.kernel.source_hash}")
            return Evaluation(status=Status.INFRASTRUCTURE, evidence=(reason,), environment=(WARNING,))
        await _misbehave(text)
        with watch.span("timing"):
            await asyncio.sleep(self.seconds(request))
        return self.verdict(request, watch)

    def seconds(self, request: EvaluationRequested) -> float:
        """How long it takes."""
        limits = self.settings.simulated
        spread = math.exp(limits.sigma * _normal(request, "seconds"))
        return min(limits.longest_s, limits.median_s * spread)

    def verdict(self, request: EvaluationRequested, watch: Stopwatch) -> Evaluation:
        """The same for equal kernels and purposes, but for the time it took."""
        environment = self.environment()
        fails = _uniform(request, "fails", purpose=False)
        if fails < self.settings.simulated.failing:
            status = FAILURES[int(fails / self.settings.simulated.failing * len(FAILURES))]
            return Evaluation(status=status, evidence=(WARNING,), stages=watch.stages(), environment=environment)
        ratio = math.exp(self.settings.simulated.speedup_sigma * _normal(request, "ratio", purpose=False))
        speedup = Speedup(
            baseline="eager",
            ratio_ppm=round(PPM * ratio),
            low_ppm=round(PPM * ratio * (1 - INTERVAL)),
            high_ppm=round(PPM * ratio * (1 + INTERVAL)),
        )
        return Evaluation(
            status=Status.PASSED,
            trust=Trust.L3,  # or no search on this chip would ever announce a winner
            evidence=(WARNING,),
            timings=(
                Timing(name="candidate", median_ns=round(BASELINE_NS / ratio)),
                Timing(name="eager", median_ns=BASELINE_NS),
            ),
            speedups=(speedup,),
            stages=watch.stages(),
            environment=environment,
        )


async def _misbehave(text: str) -> None:
    """Do what the markers in a kernel's text ask for."""
    if CRASHES in text:
        os.kill(os.getpid(), signal.SIGKILL)
    if STALLS in text:
        await asyncio.Event().wait()
    while HANGS in text:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


def _uniform(request: EvaluationRequested, what: str, *, purpose: bool = True) -> float:
    """In (0, 1), a function of the kernel alone, and of the purpose where asked for."""
    about = f"{what}/{request.kernel.source_hash}/{'/'.join(request.kernel.flags)}"
    if purpose:
        about += f"/{request.purpose.value}"
    digest = hashlib.sha256(about.encode()).digest()
    return (int.from_bytes(digest[:6]) + 0.5) / (1 << 48)


def _normal(request: EvaluationRequested, what: str, *, purpose: bool = True) -> float:
    return NormalDist().inv_cdf(_uniform(request, what, purpose=purpose))
