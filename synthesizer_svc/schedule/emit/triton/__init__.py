"""The Triton emitter: a plan under a schedule as one Python module with ``ModelNew`` (pure)."""

from __future__ import annotations

from shared.chips import Gpu, Machine
from synthesizer_svc.schedule.emit.port import Emitted, expected
from synthesizer_svc.schedule.emit.triton import module
from synthesizer_svc.schedule.emit.triton import space as decisions
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Schedule, Space

ENTRY = "ModelNew"


class TritonEmitter:
    """Python-hosted kernels for GPUs."""

    def space(self, plan: Plan, machine: Machine, threads: int) -> Space:
        del threads
        return decisions.space(plan, expected(machine, Gpu, "triton"))

    def render(self, plan: Plan, schedule: Schedule, machine: Machine, threads: int) -> Emitted:
        del threads
        text = module.emit_module(plan, schedule, expected(machine, Gpu, "triton"))
        return Emitted(source=text, flags=(), entry=ENTRY)
