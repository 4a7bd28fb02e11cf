"""Where the evaluator asks sanitizers: about a winner on a GPU that passed everything else.

Accesses outside of its memory are a kernel's fault, and it is refused. A hazard in shared memory or at a barrier
withholds the last level of trust and no more: such tools do not know every way of copying and waiting. Whatever goes
wrong with a tool withholds that level, too, and is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evaluator_svc.boxed_tool import Subject
from evaluator_svc.cases import Suite
from evaluator_svc.device import Device
from evaluator_svc.hosted import on_gpu
from evaluator_svc.hosted.box import Profile
from evaluator_svc.layers import Layer, caught
from evaluator_svc.sanitizers import compute_sanitizer
from evaluator_svc.sanitizers.compute_sanitizer import ABSENT, CHECKS, MEMORY, ComputeSanitizer, Looked
from evaluator_svc.settings import SanitizingSettings
from evaluator_svc.toolchains import Built
from shared.errors import ChipError, Fatal, Retryable
from shared.events import Entry, Purpose

SANITIZERS, HOSTED = "sanitizers", "hosted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitized:
    """``clean``: every check looked and found nothing. ``fault``: evidence against the kernel, empty without any.
    ``said``: what goes with a kernel that passed.
    """

    clean: bool = False
    fault: tuple[Entry, ...] = ()
    said: tuple[Entry, ...] = ()


def decide(looked: list[Looked]) -> Sanitized:
    """What the checks that were made come to (pure)."""
    words = []
    for one in looked:
        errors = one.found.errors
        if one.check == MEMORY and errors:
            fault = (caught(Layer.SANITIZERS), Entry(name=MEMORY, value=f"{one.found.first} ({errors} in all)"))
            return Sanitized(fault=fault)
        if errors is None:
            words.append(f"{one.check} unavailable: {one.refused}")
        elif errors:
            words.append(f"{one.check}: {one.found.first} ({errors} in all)")
        else:
            words.append(f"{one.check} found nothing")
    clean = [one.check for one in looked] == list(CHECKS) and all(one.found.errors == 0 for one in looked)
    return Sanitized(clean=clean, said=(Entry(name=SANITIZERS, value="; ".join(words)),))


@dataclass(slots=True, kw_only=True)
class SanitizerStage:
    """Looks at one kernel at a time, with the device alone: a kernel under a tool takes many times as long."""

    device: Device
    settings: SanitizingSettings
    find: Callable[[], Path | None] = compute_sanitizer.found
    profile: Callable[[], Profile] = on_gpu.profile

    def wanted(self, purpose: Purpose) -> bool:
        """A winner is looked at, nobody else."""
        return purpose is Purpose.FINAL and self.settings.sanitize_final

    async def look(self, built: Built, suite: Suite, threads: int) -> Sanitized:
        """What the checks find in calls of ``built`` on the first public case of ``suite``."""
        tool = self.find()
        if tool is None:
            return _unavailable(ABSENT)
        if built.host != HOSTED:
            return _unavailable("only modules in Python are looked at")
        runner = ComputeSanitizer(tool=tool, time_s=self.settings.sanitize_s, profile=self.profile())
        subject = Subject(
            built=built,
            inputs=suite.inputs,
            values=suite.public[0].inputs,
            signature=suite.signature,
            mutates=suite.contract.mutates,
            threads=threads,
        )
        looked: list[Looked] = []

        def told(one: Looked) -> bool:
            looked.append(one)
            return one.found.errors == 0

        try:
            async with self.device.exclusive():
                running = asyncio.ensure_future(asyncio.to_thread(runner.run, subject, told))
                try:
                    await asyncio.shield(running)
                except asyncio.CancelledError:
                    runner.interrupt()
                    await asyncio.wait([running])
                    raise
        except (Retryable, Fatal, ChipError, OSError) as error:
            return _unavailable(f"{type(error).__name__}: {error}")
        return decide(looked)


def _unavailable(why: str) -> Sanitized:
    return Sanitized(said=(Entry(name=SANITIZERS, value=f"unavailable: {why}"),))
