"""The C++ emitter: a plan under a schedule as one C++17 translation unit on the C ABI (pure)."""

from __future__ import annotations

from shared.chips import Isa, Machine
from synthesizer_svc.schedule.emit.cpp import space as decisions
from synthesizer_svc.schedule.emit.cpp import unit
from synthesizer_svc.schedule.emit.port import Emitted, expected
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Schedule, Space


class CppEmitter:
    """Native kernels for CPUs."""

    def space(self, plan: Plan, machine: Machine, threads: int) -> Space:
        return decisions.space(plan, expected(machine, Isa, "cpp"), threads)

    def render(self, plan: Plan, schedule: Schedule, machine: Machine, threads: int) -> Emitted:
        isa = expected(machine, Isa, "cpp")
        return Emitted(source=unit.emit_unit(plan, schedule, isa, threads), flags=unit.flags(isa, threads))
