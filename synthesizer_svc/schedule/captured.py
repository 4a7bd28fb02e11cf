"""The real lowering: capture to core ATen in a child process, plan, and render with the language's emitter."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

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
    """Captures an operator once for all targets; keeps ``operators_max`` graphs. ``capture_s`` bounds the child."""

    def __init__(self, *, capture_s: float, operators_max: int) -> None:
        self._capture_s, self._operators_max = capture_s, operators_max
        self._graphs: OrderedDict[str, asyncio.Task[Graph]] = OrderedDict()

    async def lower(self, operator: OperatorSpec, target: Target) -> PlannedOperator:
        """See ``Lowering.lower``."""
        graph = await self._graph(operator)
        return await asyncio.to_thread(_plan, graph, target)

    async def _graph(self, operator: OperatorSpec) -> Graph:
        key = operator.ref.source_hash
        if key not in self._graphs:
            self._graphs[key] = asyncio.create_task(captured(operator.source, seconds=self._capture_s))
            while len(self._graphs) > self._operators_max:
                self._graphs.popitem(last=False)
        self._graphs.move_to_end(key)
        return await asyncio.shield(self._graphs[key])


def _plan(graph: Graph, target: Target) -> PlannedOperator:
    planned = plan.build(graph)
    space = emit.space(target.language, planned, target.machine, target.threads)
    kinds = {group.name: group.kind for group in planned.groups}
    return PlannedOperator(plan=planned, target=target, space=space, kinds=kinds)
