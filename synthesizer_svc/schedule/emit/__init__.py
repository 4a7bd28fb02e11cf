"""Emitters by language. A new language is a new package here and a line in ``EMITTERS`` (pure)."""

from __future__ import annotations

from shared.chips import Machine
from synthesizer_svc.schedule.emit.cpp import CppEmitter
from synthesizer_svc.schedule.emit.cuda import CUDA, HIP, CudaEmitter
from synthesizer_svc.schedule.emit.port import Emitted, Emitter
from synthesizer_svc.schedule.emit.rvv import LANGUAGE as C_RVV
from synthesizer_svc.schedule.emit.rvv import RvvEmitter
from synthesizer_svc.schedule.emit.triton import TritonEmitter
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Schedule, Space

__all__ = ["EMITTERS", "Emitted", "Emitter", "render", "space"]

EMITTERS: dict[str, Emitter] = {
    "cpp": CppEmitter(),
    "triton": TritonEmitter(),
    C_RVV: RvvEmitter(),
    CUDA: CudaEmitter(CUDA),
    HIP: CudaEmitter(HIP),
}


def space(language: str, plan: Plan, machine: Machine, threads: int) -> Space:
    """Decisions of ``plan`` in ``language``.

    Raises:
        KeyError: there is no emitter of that language.
    """
    return EMITTERS[language].space(plan, machine, threads)


def render(language: str, plan: Plan, schedule: Schedule, machine: Machine, threads: int) -> Emitted:
    """The kernel of ``plan`` under ``schedule`` (missing or unknown choices are completed).

    Raises:
        KeyError: there is no emitter of that language.
    """
    emitter = EMITTERS[language]
    return emitter.render(plan, emitter.space(plan, machine, threads).complete(schedule), machine, threads)
