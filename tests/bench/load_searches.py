"""Searches through the Python client, and what their journals say of every evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from load_system import CHIP, Durations, System

from cli.client import KernelEvolveClient, Step, open_client
from search_svc import replay
from shared.adapters import open_store
from shared.clock import SECOND_NS
from shared.errors import Retryable
from shared.events import Budget, EvaluationCompleted, EvaluationRequested, Purpose, SearchFinished
from shared.rpc.settings import ClientSettings

OPERATORS = Path(__file__).resolve().parents[2] / "examples" / "operators"
NAMES = ("softmax", "layer_norm", "gelu_bias_residual", "rms_norm")
POLICY = "uniform"


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """One evaluation. Times are wall times in seconds; ``work_s`` is what it takes by the chip's rule."""

    worker: str
    requested_s: float
    begin_s: float
    end_s: float
    work_s: float
    final: bool

    @property
    def waited_s(self) -> float:
        return self.begin_s - self.requested_s


@dataclass(kw_only=True)
class Followed:
    """What the journal of one search said, from its submission to its end."""

    search_id: str
    submitted_s: float = 0.0
    ended_s: float = 0.0
    outcome: str = ""
    evaluated: list[Evaluated] = field(default_factory=list)

    @property
    def took_s(self) -> float:
        return self.ended_s - self.submitted_s


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A search to submit."""

    evaluations: int
    at_once: int = 2
    """Expansions in flight."""
    each: int = 4
    """Candidates asked of one expansion."""
    priority: int = 0
    operator: str = ""
    """Empty: one of ``NAMES`` in turn."""


@dataclass(kw_only=True)
class Load:
    """Whoever submits searches to one cluster. ``tell`` hears of every evaluation."""

    system: System
    tell: Callable[[Evaluated], None] = lambda _: None
    number: int = 1
    """Of the last search, and its number of threads: part of what a verdict depends on, so that no search is answered
    from the memory of another one."""


def loaded(system: System) -> Load:
    """With everything captured and imported: by a small search for each operator."""
    load = Load(system=system)
    asyncio.run(follow_all(load, [Wish(evaluations=2, at_once=1, each=1)] * len(NAMES)))
    return load


async def follow_all(load: Load, wishes: Sequence[Wish], *, spread_s: float = 0) -> list[Followed]:
    """Submit all, evenly spread over ``spread_s``, and follow each to its end."""

    async def one(client: KernelEvolveClient, position: int, wish: Wish) -> Followed:
        await asyncio.sleep(spread_s * position / len(wishes))
        return await follow(load, client, wish)

    async with client_of(load.system) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(client, position, wish)) for position, wish in enumerate(wishes)]
    return [task.result() for task in tasks]


def client_of(system: System) -> AbstractAsyncContextManager[KernelEvolveClient]:
    """A connection of its own."""
    return open_client(ClientSettings(server=system.state.server))


async def follow(load: Load, client: KernelEvolveClient, wish: Wish) -> Followed:
    """Submit one search and read its journal until it ends."""
    found = Followed(search_id=await submit(load, client, wish))
    requests: dict[str, tuple[EvaluationRequested, float]] = {}
    async for step in client.watch(found.search_id):
        found.submitted_s = found.submitted_s or step.fact.time_ns / SECOND_NS
        for decision in step.decisions:
            if isinstance(decision.event, EvaluationRequested):
                requests[decision.event.evaluation_id] = decision.event, step.fact.time_ns / SECOND_NS
        if isinstance(step.fact.event, EvaluationCompleted) and step.fact.event.evaluation_id in requests:
            evaluated = _evaluated(load.system.durations, step, *requests[step.fact.event.evaluation_id])
            found.evaluated.append(evaluated)
            load.tell(evaluated)
        _note_end(found, step)
    return found


async def submit(load: Load, client: KernelEvolveClient, wish: Wish) -> str:
    """The new search's id."""
    load.number += 1
    name = wish.operator or NAMES[load.number % len(NAMES)]
    submitted = await client.submit(
        name,
        (OPERATORS / f"{name}.py").read_text(encoding="utf-8"),
        chip=CHIP,
        budget=Budget(evaluations=wish.evaluations),
        policy=POLICY,
        seed=load.number,
        threads=load.number,
        priority=wish.priority,
        candidates_per_expansion=wish.each,
        expansions_in_flight=wish.at_once,
    )
    return submitted.search_id


async def verified(system: System, search_ids: Iterable[str]) -> int:
    """How many journals replay to the decisions they record. Raises ``ReplayDivergence`` for one that does not."""
    count = 0
    async with open_store(system.state.store_url) as store:
        for search_id in search_ids:
            replay.verify([entry async for entry in store.journal.read(search_id)])
            count += 1
    return count


def _evaluated(durations: Durations, step: Step, request: EvaluationRequested, requested_s: float) -> Evaluated:
    fact = step.fact.event
    assert isinstance(fact, EvaluationCompleted)
    if fact.evaluation.memoised:
        raise Retryable("a verdict was remembered: the load is not what it is meant to be")
    end_s = fact.at_ns / SECOND_NS
    return Evaluated(
        worker=step.fact.source,
        requested_s=requested_s,
        begin_s=end_s - fact.evaluation.stages.timing_ns / SECOND_NS,
        end_s=end_s,
        work_s=durations.of(request),
        final=request.purpose is Purpose.FINAL,
    )


def _note_end(found: Followed, step: Step) -> None:
    for decision in step.decisions:
        if isinstance(decision.event, SearchFinished):
            found.outcome = decision.event.outcome
            found.ended_s = step.fact.time_ns / SECOND_NS
