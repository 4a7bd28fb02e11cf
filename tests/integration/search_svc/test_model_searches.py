"""Searches with a model: synthesizer, search and bus are real; the model and the verdicts are scripted."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

from search_svc import replay
from shared.events import EvaluationCompleted
from synthesizer_svc.asking.settings import AskingSettings
from synthesizer_svc.model import ModelError
from synthesizer_svc.model.budgeted import BudgetSettings
from synthesizer_svc.settings import ModelSettings, Settings
from tests.aio import on_loop
from tests.fakes.closed_loop import search
from tests.fakes.talker import Talker

LINE = re.compile(r"^- (\S+): now .+, may be (.+?) \(", re.MULTILINE)
BEST = {"g0.unroll": 8, "g0.stores": "streaming", "g1.accumulators": 4}


def cost(choices):
    """Each right choice is worth a fifth; a kernel that no schedule wrote is as fast as the baseline."""
    if not choices:
        return 1_000_000
    right = sum(choices[key] == value for key, value in BEST.items())
    return round(900_000 * 1.2**right)


def knows(request):
    """A model that knows the best choices, where they are on offer, and a little C++."""
    if not request.schema:
        return f"```cpp\nint ke_launch(int n) {{ return {request.seed}; }}\n```"
    offered = {key: [json.loads(value) for value in values.split(", ")] for key, values in offered_in(request)}
    wanted = [key for key in offered if BEST.get(key) in offered[key]] or list(offered)[:1]
    changes = [
        {"decision": key, "value": BEST[key] if BEST.get(key) in offered[key] else offered[key][0]} for key in wanted
    ]
    return json.dumps({"because": "memory-bound", "changes": changes[:1]})


def offered_in(request):
    return LINE.findall(request.messages[0].text)


def settings(asking, share):
    return Settings(model=ModelSettings(share_percent=share), asking=AskingSettings(asking=asking))


def finished(run):
    tree = replay.rebuild(run.entries)
    assert tree is not None
    return tree


@on_loop
async def test_a_search_by_chosen_moves_alone_ends_improved_and_says_how():
    model = Talker(knows)
    run = await search(cost, model=model, settings=settings("moves", 100), evaluations=12)
    end = finished(run)
    assert end.outcome == "improved"
    assert {candidate.context.asking for candidate in run.candidates} == {"moves"}
    choices = run.schedules[end.winner_id]
    assert cost(choices) == cost(BEST)
    best = next(c for c in run.candidates if c.candidate_id == end.winner_id)
    assert best.move.rationale == "memory-bound"
    assert best.context.conversation_hash
    assert best.usage.input_tokens


@on_loop
async def test_results_decide_who_writes_and_the_log_replays_to_the_same_decisions():
    run = await search(cost, model=Talker(knows), settings=settings("hybrid", 50), evaluations=40)
    assert finished(run).outcome == "improved"
    asked = [candidate.context.asking for candidate in run.candidates]
    assert {"", "moves", "whole"} <= set(asked)
    requests = list(run.requests.values())
    assert requests[0].writers == ()
    last = {record.writer: record for record in requests[-1].writers}
    assert last["whole"].gains_milli == 0
    assert last["moves"].gain_micro > 0
    assert replay.verify(run.entries)


class Spent(Talker):
    """Its money is gone after ``calls`` answers."""

    def __init__(self, calls: int) -> None:
        super().__init__(knows)
        self._calls = calls

    async def complete(self, request):
        if len(self.asked) == self._calls:
            raise ModelError("budget", "the search's budget of 0.50: 0.49 are spent", pauses=True)
        return await super().complete(request)


@on_loop
async def test_a_search_whose_money_is_spent_ends_with_what_it_found_where_that_was_chosen():
    chosen = replace(settings("moves", 100), budget=BudgetSettings(when_spent="end"))
    run = await asyncio.wait_for(search(cost, model=Spent(7), settings=chosen, evaluations=40), 60)
    end = finished(run)
    assert (end.outcome, end.limit) == ("improved", "synthesis_budget")
    assert end.synthesis_failure[1].startswith("the search's budget")
    assert end.nodes[end.winner_id].final is not None  # measured again before it was announced
    assert 0 < end.charged <= 7
    assert replay.verify(run.entries)


class Thinking(Talker):
    """Answers nothing until the first kernel has its verdict."""

    def __init__(self) -> None:
        super().__init__(knows)
        self.judged = asyncio.Event()

    async def complete(self, request):
        await asyncio.wait_for(self.judged.wait(), 30)
        return await super().complete(request)


@on_loop
async def test_a_schedules_kernel_is_evaluated_before_a_slow_model_has_answered():
    model = Thinking()

    def judge(choices):
        model.judged.set()
        return cost(choices)

    run = await search(judge, model=model, settings=settings("hybrid", 50), evaluations=6)
    assert finished(run).outcome == "improved"
    first_by_model = next(n for n, fact in enumerate(run.facts) if getattr(getattr(fact, "context", 0), "asking", ""))
    judged = [fact for fact in run.facts[:first_by_model] if isinstance(fact, EvaluationCompleted)]
    assert judged
    # The order in which facts came is the record, and decides the same again.
    assert replay.verify(run.entries).tree == replay.rebuild(run.entries)
