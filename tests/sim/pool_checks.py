"""What must be true after any simulated run of a pool, beside what must be true of its searches' journals."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

from search_svc import replay
from shared import wire
from shared.cache import Depth
from shared.events import NOT_THE_KERNELS_FAULT, Envelope, EvaluationCompleted, Purpose
from tests.sim.checks import Broken, every_invariant
from tests.sim.pool_world import PoolWorld

PASSED_OVER_MAX = 20
"""Claims of other searches before one's next request is served: with three that have work, a few evaluations each. The
large search alone has 24 requests waiting."""


def every_pool_invariant(world: PoolWorld) -> None:
    """Raises ``Broken``, or what replay raises, for the first one that does not hold."""
    every_invariant(world, lossy=not world.calm)  # type: ignore[arg-type]
    for search in world.searches:
        entries = asyncio.run(_entries(world, search.search_id))
        _each_evaluation_applied_once(world, [wire.unpack(entry.event) for entry in entries])
        _budget_exact(world, replay.verify(entries).tree)
    _require(world, not world.unfenced, f"published although the claim was lost: {world.unfenced}")
    _one_verdict_per_kernel(world)
    _nothing_left(world)
    if world.calm:  # elsewhere what dead workers had is claimed twice
        _shares_were_fair(world)


async def _entries(world: PoolWorld, search_id: str) -> list:
    return [entry async for entry in world.store.journal.read(search_id)]


def _require(world: PoolWorld, condition: bool, what: str) -> None:
    if not condition:
        raise Broken(f"seed {world.seed}{' calm' if world.calm else ''}: {what}")


def _each_evaluation_applied_once(world: PoolWorld, facts: list[Envelope]) -> None:
    answers = Counter(fact.event.evaluation_id for fact in facts if isinstance(fact.event, EvaluationCompleted))
    twice = [name for name, count in answers.items() if count > 1]
    _require(world, not twice, f"evaluations answered more than once in a journal: {twice}")


def _budget_exact(world: PoolWorld, tree) -> None:
    counted = sum(
        node.evaluation is not None and node.evaluation.status not in NOT_THE_KERNELS_FAULT
        for node in tree.nodes.values()
    )
    _require(world, tree.charged == counted, f"charged {tree.charged}, measured {counted}")
    if tree.reason == "evaluations":
        _require(world, tree.charged == tree.search.budget.evaluations, f"ended at {tree.charged} evaluations")


def _one_verdict_per_kernel(world: PoolWorld) -> None:
    """Of all runs of one kernel, the verdict of one stands, whoever publishes it."""
    standing: dict[tuple[str, Purpose], object] = {}
    for envelope in world.bus.published:
        event = envelope.event
        if isinstance(event, EvaluationCompleted) and event.evaluation.status not in NOT_THE_KERNELS_FAULT:
            verdict = replace(event.evaluation, memoised=False)
            first = standing.setdefault((event.kernel_id, event.purpose), verdict)
            _require(world, first == verdict, f"two verdicts on kernel {event.kernel_id}")


def _nothing_left(world: PoolWorld) -> None:
    _require(world, world.depth == Depth(waiting=0, claimed=0), f"work left in the queue: {world.depth}")
    _require(world, not world.open, f"wishes left of searches that have ended: {world.open}")
    phases = [row["phase"] for row in world.rows]
    _require(world, phases == ["finished"] * len(world.searches), f"rows tell otherwise: {phases}")


def _shares_were_fair(world: PoolWorld) -> None:
    most = world.cache.passed_over_most
    _require(world, most <= PASSED_OVER_MAX, f"unfair: one search waited for {most} evaluations of others")
