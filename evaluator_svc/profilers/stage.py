"""Where the evaluator asks a profiler: after the verdict, about a kernel that passed, and never about the verdict.

Whatever goes wrong here is evidence beside the diagnosis that there would be without a profiler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator_svc import nvidia
from evaluator_svc.boxed_tool import Subject
from evaluator_svc.cases import Suite
from evaluator_svc.device import Device
from evaluator_svc.diagnosis import against_floors
from evaluator_svc.hosted.box import Profile
from evaluator_svc.profilers import ncu, told
from evaluator_svc.profilers.call import Call
from evaluator_svc.profilers.ncu import Ncu
from evaluator_svc.profilers.ncu_report import FORBIDDEN, KERNELS_MAX, Report
from evaluator_svc.roofline import Floors
from evaluator_svc.settings import ProfilingSettings
from evaluator_svc.toolchains import Built
from shared.errors import ChipError, Fatal, Retryable
from shared.events import Bound, Diagnosis, Entry, Purpose

COUNTERS, HOSTED = "counters", "hosted"
RESTRICTED = (
    "the driver lets only administrators read counters, and a kernel's box is none; load it with "
    "NVreg_RestrictProfilingToAdminUsers=0"
)
TOOL = "ncu (Nsight Compute): cold caches before every launch, clocks left alone; the report was in the kernel's reach"


@dataclass(slots=True, kw_only=True)
class CounterStage:
    """Profiles one kernel at a time, with the device alone."""

    device: Device
    settings: ProfilingSettings
    find: Callable[[], Path | None] = ncu.found
    profile: Callable[[], Profile] = ncu.gpu_profile
    restricted: Callable[[], bool] = nvidia.counters_restricted

    def wanted(self, purpose: Purpose) -> bool:
        """A winner is always asked about; others cost seconds that a search could use."""
        return purpose is Purpose.FINAL or self.settings.profile_search

    async def diagnosis(
        self, built: Built, suite: Suite, *, threads: int, floors: Floors, measured_ns: float, otherwise: Diagnosis
    ) -> Diagnosis:
        """What counters say of a call that took ``measured_ns``; ``otherwise``, and why, where they say nothing."""
        report = await self._report(built, suite, threads)
        if not report.kernels:
            return _beside(otherwise, (Entry(name=COUNTERS, value=f"unavailable: {report.refused}"),))
        call = Call(
            kernels=report.kernels,
            measured_ns=measured_ns,
            bytes_min=suite.bytes_min,
            floors=floors,
            complete=len(report.kernels) < KERNELS_MAX,
        )
        found = told.diagnosis(call, TOOL)
        if found.bound is Bound.UNKNOWN:
            return _beside(otherwise, found.evidence)
        return replace(found, evidence=(*against_floors(floors, measured_ns), *found.evidence))

    async def _report(self, built: Built, suite: Suite, threads: int) -> Report:
        tool = self.find()
        if tool is None:
            return Report(kernels=(), refused=ncu.ABSENT)
        if built.host != HOSTED:
            return Report(kernels=(), refused="only modules in Python are profiled")
        if self.restricted():
            return Report(kernels=(), refused=f"{FORBIDDEN}: {RESTRICTED}")
        runner = Ncu(tool=tool, time_s=self.settings.profile_s, profile=self.profile())
        subject = Subject(
            built=built,
            inputs=suite.inputs,
            values=suite.public[0].inputs,
            signature=suite.signature,
            mutates=suite.contract.mutates,
            threads=threads,
        )
        try:
            async with self.device.exclusive():
                running = asyncio.ensure_future(asyncio.to_thread(runner.run, subject))
                try:
                    return await asyncio.shield(running)
                except asyncio.CancelledError:
                    runner.interrupt()
                    await asyncio.wait([running])
                    raise
        except (Retryable, Fatal, ChipError, OSError) as error:
            return Report(kernels=(), refused=f"{type(error).__name__}: {error}")


def _beside(otherwise: Diagnosis, evidence: tuple[Entry, ...]) -> Diagnosis:
    return replace(otherwise, evidence=(*otherwise.evidence, *evidence))
