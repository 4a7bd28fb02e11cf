"""The emitter of CUDA and HIP: a plan under a schedule as one translation unit on the C ABI (pure).

One source serves both: what differs is in ``ke_gpu.h``, and in the numbers of the chip that a schedule is made for.
Written are element-wise groups, gathers and folds of rows; products, windows of products and scans are refused by name.
"""

from __future__ import annotations

from shared.chips import Gpu, Machine
from synthesizer_svc.schedule.emit.cuda import space as decisions
from synthesizer_svc.schedule.emit.cuda import unit
from synthesizer_svc.schedule.emit.port import Emitted, expected
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Schedule, Space

CUDA, HIP = "cuda", "hip"


class CudaEmitter:
    """Native kernels for GPUs. ``language`` is that of the chip."""

    def __init__(self, language: str) -> None:
        self._language = language

    def space(self, plan: Plan, machine: Machine, threads: int) -> Space:
        """The decisions.

        Raises:
            Unsupported: the machine is no GPU, or an operation has no form here; found before any search.
        """
        del threads
        gpu = expected(machine, Gpu, self._language)
        found = decisions.space(plan, gpu)
        unit.emit_unit(plan, found.default(), gpu)
        return found

    def render(self, plan: Plan, schedule: Schedule, machine: Machine, threads: int) -> Emitted:
        """See ``Emitter.render``; ``threads`` are those of a processor."""
        del threads
        return Emitted(source=unit.emit_unit(plan, schedule, expected(machine, Gpu, self._language)), flags=())
