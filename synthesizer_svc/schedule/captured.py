"""The real lowering: capture to core ATen in a child process, plan, and render with the language's emitter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from shared.operators import OperatorSpec
from synthesizer_svc.schedule import emit, plan
from synthesizer_svc.schedule.capture import capture
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.lowering import Rendered, Target
from synthesizer_svc.schedule.schedule import Schedule, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOperator:
    """A captured and planned operator, rendered by the emitter of its target's language."""

    plan: Plan
    target: Target
    space: Space
    kinds: Mapping[str, str]

    @property
    def operator_class(self) -> str:
        return self.plan.operator_class

    def render(self, schedule: Schedule) -> Rendered:
        emitted = emit.render(self.target.language, self.plan, schedule, self.target.isa, self.target.threads)
        return Rendered(source=emitted.source, flags=emitted.flags)


class CapturedLowering:
    """Captures with the capture child, once per operator, and plans; ``capture_s`` bounds the child."""

    def __init__(self, *, capture_s: float) -> None:
        self._capture_s = capture_s

    async def lower(self, operator: OperatorSpec, target: Target) -> PlannedOperator:
        return await asyncio.to_thread(self._lower, operator.source, target)

    def _lower(self, source: str, target: Target) -> PlannedOperator:
        planned = plan.build(capture(source, seconds=self._capture_s))
        space = emit.space(target.language, planned, target.isa, target.threads)
        return PlannedOperator(
            plan=planned, target=target, space=space, kinds={group.name: group.kind for group in planned.groups}
        )
