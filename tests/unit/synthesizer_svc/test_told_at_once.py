"""Answers of one expansion are told as they come: schedules do not wait for a model, nor one answer for another."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest

from shared import envelopes, topics, wire
from shared.errors import Unavailable
from shared.events import CandidateProduced, CandidateRejected, ExpansionFailed
from synthesizer_svc.asking.form import form_of
from synthesizer_svc.model import ModelError
from synthesizer_svc.model.budgeted import BudgetSettings
from synthesizer_svc.no_knowledge import NoKnowledge
from synthesizer_svc.schedule.emit import Emitted
from synthesizer_svc.settings import Settings
from tests.aio import on_loop
from tests.fakes.talker import Talker
from tests.unit.synthesizer_svc.desk import KERNEL, Desk, desk
from tests.unit.synthesizer_svc.spaces import SPACE, TextLowered, TextLowering

WITHIN_S = 30.0
"""For what needs no time: a test that waits for longer hangs."""
LINE = re.compile(r"^- (\S+): now .+, may be (.+?) \(", re.MULTILINE)


def by_seed(request):
    return f"```cpp\n{KERNEL}\n// {request.seed}\n```"


def first_on_offer(request):
    key, values = LINE.search(request.messages[0].text).groups()
    value = json.loads(values.split(", ")[0])
    return json.dumps({"because": "it fits", "changes": [{"decision": key, "value": value}]})


class Slow(Talker):
    """Thinks about each question until its door opens; doors are numbered in the order of the questions."""

    def __init__(self, reply) -> None:
        super().__init__(reply)
        self.doors: dict[int, asyncio.Event] = {}

    def door(self, nth: int) -> asyncio.Event:
        return self.doors.setdefault(nth, asyncio.Event())

    async def complete(self, request):
        nth = len(self.asked)
        completion = await super().complete(request)
        await asyncio.wait_for(self.door(nth).wait(), WITHIN_S)
        return completion


class Cut(Talker):
    """Its ``nth`` question is never answered the first time."""

    def __init__(self, reply, nth: int) -> None:
        super().__init__(reply)
        self._nth = nth

    async def complete(self, request):
        completion = await super().complete(request)
        if len(self.asked) == self._nth:
            raise Unavailable("the store is gone")
        return completion


class Listening:
    """Facts as they are published while a request is being handled."""

    def __init__(self, at: Desk, request) -> None:
        self._at, self._request = at, request

    async def __aenter__(self):
        self._topic = self._at.ports.bus.subscribe(topics.FACTS, "listening")
        self._facts = await self._topic.__aenter__()
        cause = envelopes.envelope(self._request, cause_id="cause", source="/test", clock=self._at.ports.clock)
        self.handling = asyncio.create_task(self._at.service.subscriptions[0].handler(cause))
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.handling.cancel()
        await asyncio.gather(self.handling, return_exceptions=True)
        await self._topic.__aexit__(*exc)

    async def heard(self, count: int):
        async def some():
            found = []
            while len(found) < count:
                if (delivery := await self._facts.poll(0.01)) is not None:
                    found.append(wire.decode(delivery.record).event)
            return found

        return await asyncio.wait_for(some(), WITHIN_S)


async def published(at: Desk):
    """Everything on the topic, oldest first, repetitions included."""
    async with at.ports.bus.subscribe(topics.FACTS, "published") as facts:
        found = []
        while (delivery := await facts.poll(0)) is not None:
            found.append(wire.decode(delivery.record))
        return found


@on_loop
async def test_a_schedules_candidate_is_told_while_the_model_is_still_thinking():
    model = Slow(by_seed)
    async with desk(model=model, share=50) as at, Listening(at, await at.request(count=2)) as facts:
        (early,) = await facts.heard(1)
        assert isinstance(early, CandidateProduced)
        assert (early.index, early.context.asking) == (1, "")
        assert not facts.handling.done()
        model.door(0).set()
        (late,) = await facts.heard(1)
        assert (late.index, late.context.asking) == (0, "whole")
        await asyncio.wait_for(facts.handling, WITHIN_S)


@on_loop
async def test_of_two_answers_of_models_the_quick_one_does_not_wait_for_the_slow_one():
    model = Slow(by_seed)
    async with desk(model=model, share=100) as at, Listening(at, await at.request(count=2)) as facts:
        model.door(1).set()
        (early,) = await facts.heard(1)
        assert isinstance(early, CandidateProduced)
        assert not facts.handling.done()
        model.door(0).set()
        (late,) = await facts.heard(1)
        assert {early.index, late.index} == {0, 1}


@pytest.mark.parametrize("asking", ["whole", "moves"])
@on_loop
async def test_an_expansion_taken_up_again_tells_the_same_and_pays_for_nothing_twice(asking):
    model = Cut(by_seed if asking == "whole" else first_on_offer, nth=2)
    async with desk(model=model, share=75, asking={"asking": asking}) as at:
        request = await at.request(count=4)
        with pytest.raises(Unavailable):
            await at.deliver(request)
        before = [fact.event for fact in await published(at)]
        first = [one.hash for one in model.asked]
        assert len(before) >= 2  # a schedule's, and what the model had answered
        facts = await at.facts(request)
        assert facts[: len(before)] == before
        assert sorted(fact.index for fact in facts) == [0, 1, 2, 3]
        assert len({fact.kernel.kernel_id for fact in facts}) == 4
        # What was told is asked for by nobody, and what was not is asked in the same words.
        again = [one.hash for one in model.asked[len(first) :]]
        assert len(again) == 4 - len(before)
        assert again[0] == first[1]
        assert await at.facts(request) == facts


@on_loop
async def test_a_crash_between_storing_and_publishing_loses_no_candidate():
    async with desk(model=Talker(by_seed), share=50) as at:
        request = await at.request(count=2)
        publish = at.ports.bus.publish

        async def gone(*_):
            at.ports.bus.publish = publish
            raise Unavailable("the broker is gone")

        at.ports.bus.publish = gone
        with pytest.raises(Unavailable):
            await at.deliver(request)
        facts = await at.facts(request)
        assert sorted(fact.index for fact in facts) == [0, 1]
        assert await at.facts(request) == facts


@on_loop
async def test_two_processes_that_write_for_one_expansion_tell_each_index_in_one_way():
    slow, quick = Slow(by_seed), Talker(lambda request: f"```cpp\n{KERNEL}\n// quick {request.seed}\n```")
    async with desk(model=slow, share=50) as at:
        request = await at.request(count=4)
        async with Listening(at, request) as facts:
            await facts.heard(2)
            other = Desk(at.ports, Settings(), TextLowering(), NoKnowledge(), model=quick)
            await other.deliver(request)
            for nth in range(4):
                slow.door(nth).set()
            await asyncio.wait_for(facts.handling, WITHIN_S)
        told = {fact.id: fact.event for fact in await published(at)}
        assert sorted(event.index for event in told.values()) == [0, 1, 2, 3]
        assert await at.facts(request) == list(told.values())


class SameForm(TextLowering):
    """Renders with the build flags that a model's kernels have, so that equal texts are equal kernels."""

    async def lower(self, operator, target):
        flags = form_of(target.language, target.machine, target.threads).flags

        class Lowered(TextLowered):
            def render(self, schedule) -> Emitted:
                return replace(super().render(schedule), flags=flags)

        return Lowered(target=target)


@on_loop
async def test_a_models_kernel_that_equals_a_schedules_is_a_duplicate():
    model, copied = Talker(lambda _: f"```cpp\n{copied[0]}```"), [""]
    async with desk(model=model, share=0, lowering=SameForm()) as at:
        (scheduled,) = await at.facts(await at.request(count=1))
        copied[0] = (await at.ports.store.blobs.get(scheduled.kernel.source_hash)).decode()
    async with desk(model=model, share=50, lowering=SameForm()) as at:
        first, second = await at.facts(await at.request(count=2))
        assert isinstance(first, CandidateProduced)
        assert first.kernel.kernel_id == scheduled.kernel.kernel_id
        assert isinstance(second, CandidateRejected)
        assert (second.index, second.code, second.context.asking) == (0, "duplicate", "whole")
        assert model.complaints  # it was told so, and could have written another


@on_loop
async def test_what_a_schedule_came_to_is_not_on_offer_to_moves():
    model = Talker(first_on_offer)
    async with desk(model=model, share=50, asking={"asking": "moves"}) as at:
        parent = await at.kernel(SPACE.default())
        request = await at.request(count=4, parent_ids=("c1",), parents=(parent,))
        facts = await at.facts(request)
        assert [fact.context.asking for fact in facts] == ["", "", "moves", "moves"]
        assert len({fact.kernel.kernel_id for fact in facts}) == 4


@pytest.mark.parametrize(
    ("code", "when_spent", "pauses"), [("budget", "end", False), ("budget", "pause", True), ("endpoint", "end", True)]
)
@on_loop
async def test_only_spent_money_ends_a_search_and_only_where_that_was_chosen(code, when_spent, pauses):
    model = Talker(lambda _: ModelError(code, "no", pauses=True))
    async with desk(model=model, share=100, budget=BudgetSettings(when_spent=when_spent)) as at:
        (fact,) = await at.facts(await at.request(count=2))
        assert isinstance(fact, ExpansionFailed)
        assert (fact.code, fact.pauses) == (code, pauses)


@on_loop
async def test_a_pause_is_told_of_the_whole_expansion_when_the_last_answer_is_in():
    dead = ModelError("endpoint", "nobody answers", pauses=True)
    async with desk(model=Talker(lambda _: dead), share=100) as at:
        (fact,) = await at.facts(await at.request(count=2))
        assert isinstance(fact, ExpansionFailed)
        assert fact.pauses
