"""The RVV emitter: a plan under a schedule as one C11 unit with intrinsics of RISC-V's vector extension (pure)."""

from __future__ import annotations

from shared.chips import Machine, VectorUnit
from synthesizer_svc.schedule.emit.port import Emitted, expected
from synthesizer_svc.schedule.emit.rvv import space as decisions
from synthesizer_svc.schedule.emit.rvv import unit
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Schedule, Space

LANGUAGE = "c-rvv"


class RvvEmitter:
    """Native kernels for RISC-V vector machines."""

    def space(self, plan: Plan, machine: Machine, threads: int) -> Space:
        """The decisions.

        Raises:
            Unsupported: the machine is no vector unit, or an operation has no form; found here, before any search.
        """
        del threads
        vlen = expected(machine, VectorUnit, LANGUAGE).vlen
        found = decisions.space(plan, vlen)
        unit.emit_unit(plan, found.default(), machine.name, vlen)
        return found

    def render(self, plan: Plan, schedule: Schedule, machine: Machine, threads: int) -> Emitted:
        """See ``Emitter.render``; one thread, whatever ``threads`` says."""
        del threads
        found = expected(machine, VectorUnit, LANGUAGE)
        return Emitted(source=unit.emit_unit(plan, schedule, found.name, found.vlen), flags=(*unit.FLAGS, *found.flags))
