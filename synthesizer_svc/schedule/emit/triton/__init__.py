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
        """The decisions.

        Raises:
            Unsupported: the machine is no GPU, or an operation has no form in Triton; found here, before any search.
        """
        del threads
        gpu = expected(machine, Gpu, "triton")
        found = decisions.space(plan, gpu)
        module.emit_module(plan, found.default(), gpu)
        return found

    def render(self, plan: Plan, schedule: Schedule, machine: Machine, threads: int) -> Emitted:
        del threads
        text = module.emit_module(plan, schedule, expected(machine, Gpu, "triton"))
        return Emitted(source=text, flags=(), entry=ENTRY)
