"""The real lowering: capture to core ATen in a child process, plan, and render with the language's emitter."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from shared.errors import Retryable
from shared.operators import OperatorSpec
from synthesizer_svc.schedule import emit, plan
from synthesizer_svc.schedule.capture import captured
from synthesizer_svc.schedule.emit import Emitted
from synthesizer_svc.schedule.graph import Graph
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.lowering import Target
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

    def render(self, schedule: Schedule) -> Emitted:
        emitter = emit.EMITTERS[self.target.language]
        return emitter.render(self.plan, schedule, self.target.machine, self.target.threads)


class CapturedLowering:
    """Captures an operator once for all targets; keeps ``operators_max`` graphs.

    ``capture_s`` and ``memory_mb`` (0: what the machine has) bound the child.
    """

    def __init__(self, *, capture_s: float, operators_max: int, memory_mb: int = 0) -> None:
        self._capture_s, self._operators_max, self._memory_bytes = capture_s, operators_max, memory_mb << 20
        self._graphs: OrderedDict[str, asyncio.Task[Graph]] = OrderedDict()

    async def lower(self, operator: OperatorSpec, target: Target) -> PlannedOperator:
        """See ``Lowering.lower``."""
        graph = await self._graph(operator)
        return await asyncio.to_thread(_plan, graph, target)

    async def _graph(self, operator: OperatorSpec) -> Graph:
        key = operator.ref.source_hash
        if key not in self._graphs:
            self._graphs[key] = asyncio.create_task(
                captured(operator.source, seconds=self._capture_s, memory_bytes=self._memory_bytes)
            )
            while len(self._graphs) > self._operators_max:
                self._graphs.popitem(last=False)
        self._graphs.move_to_end(key)
        try:
            return await asyncio.shield(self._graphs[key])
        except Retryable:
            self._graphs.pop(key, None)  # no word on the operator: the next one to ask has it captured again
            raise


def _plan(graph: Graph, target: Target) -> PlannedOperator:
    planned = plan.build(graph)
    space = emit.space(target.language, planned, target.machine, target.threads)
    kinds = {group.name: group.kind for group in planned.groups}
    return PlannedOperator(plan=planned, target=target, space=space, kinds=kinds)
