"""The pool with one step wrong, once per step: a simulation of any of these that passes shows its checks empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluator_svc.intake import Intake
from evaluator_svc.slot import Slot
from shared.cache import Claim, Work, WorkState
from shared.events import Evaluation, EvaluationRequested
from tests.sim.pool_world import NEVER_AGAIN, Parts
from tests.sim.processes import LossyCache


class CommitsBeforeFinish(Intake):
    """Takes what is in the queue for done."""

    async def settle(self) -> None:
        self._tracking.finish([tracked.work_id for tracked in self._tracking.waited_for()])
        await self._commit_finished()


class NoFence(Slot):
    """Does not care whether its claim is held."""

    async def _renew(self, claim: Claim) -> bool:
        await super()._renew(claim)
        return True


class LastVerdictStands(Slot):
    """Publishes its own verdict, whoever had judged the kernel before."""

    async def _judged(self, claim: Claim, request: EvaluationRequested) -> Evaluation:
        self._memo.keep = self._keep  # type: ignore[method-assign]
        return await super()._judged(claim, request)

    @staticmethod
    async def _keep(request: EvaluationRequested, evaluation: Evaluation) -> Evaluation:
        return evaluation


class _Queues:
    def __init__(self, cache: LossyCache) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


class LossGoesUnnoticed(_Queues):
    """What the queue has lost is believed to wait in it."""

    async def states(self, queue: str, ids: Sequence[str]) -> Mapping[str, WorkState]:
        states = await self._cache.states(queue, ids)
        return {each: WorkState.WAITING if state is WorkState.UNKNOWN else state for each, state in states.items()}


class OneFlow(_Queues):
    """First come, first served."""

    async def add(self, queue: str, work: Work) -> bool:
        added = await self._cache.add(queue, replace(work, flow=""))
        if added:
            self._cache.flows[work.id] = work.flow
        return added


@dataclass(frozen=True)
class Mutation:
    """A wrong pool, the kind of world that shows it, and a word of the complaint that it must provoke."""

    parts: Parts
    calm: bool
    expected: str


MUTATIONS: dict[str, Mutation] = {
    "commit before finish": Mutation(Parts(intake=CommitsBeforeFinish), True, "Stalled"),
    "no adding again of what the queue has lost": Mutation(Parts(queues=LossGoesUnnoticed), True, "Stalled"),
    "no fence": Mutation(Parts(slot=NoFence), True, "the claim was lost"),
    "no first verdict": Mutation(Parts(slot=LastVerdictStands), False, "two verdicts"),
    "first come first served": Mutation(Parts(queues=OneFlow), True, "unfair"),
    "no asking again": Mutation(Parts(sweeping=NEVER_AGAIN), False, "Stalled"),
}
