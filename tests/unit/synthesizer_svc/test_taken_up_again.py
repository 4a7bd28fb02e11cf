"""An expansion that is taken up again asks a model the same, whatever was learnt meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from shared.errors import Unavailable
from shared.events import CandidateProduced
from shared.knowledge import Passage
from tests.fakes.talker import Talker
from tests.unit.synthesizer_svc.desk import KERNEL, desk
from tests.unit.synthesizer_svc.spaces import a_skill

WHOLE = f"Less.\n```cpp\n{KERNEL}\n```"


class Growing:
    """Knows more each time that it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def retrieve(self, query, limit):
        self.asked += 1
        return (Passage(document_id=f"guidance/{self.asked}", title="T", text=f"Lesson {self.asked}.", score=0.5),)

    async def skills(self, query):
        return (a_skill(f"pointwise:unroll={self.asked}", 0.5),)


class Cut(Talker):
    """Its first answer never arrives."""

    async def complete(self, request):
        completion = await super().complete(request)
        if len(self.asked) == 1:
            raise Unavailable("the store is gone")
        return completion


def test_skills_that_were_learnt_meanwhile_change_no_question_that_was_asked():
    async def scenario():
        model, knowledge = Cut(lambda _: WHOLE), Growing()
        async with desk(model=model, share=100, knowledge=knowledge) as at:
            request = await at.request(count=1)
            with pytest.raises(Unavailable):
                await at.facts(request)
            (fact,) = await at.facts(request)
            assert isinstance(fact, CandidateProduced)
            assert fact.context.document_ids == ("guidance/1",)
            first, again = model.asked
            assert "Lesson 1." in first.messages[0].text
            assert again.hash == first.hash
            (other,) = await at.facts(await at.request(count=1, expansion_id="e2"))
            assert other.context.document_ids == ("guidance/2",)

    asyncio.run(scenario())


def test_schedules_alone_take_what_is_known_now():
    async def scenario():
        knowledge = Growing()
        async with desk(knowledge=knowledge) as at:
            for expected in ("guidance/1", "guidance/2"):
                facts = await at.facts(await at.request(expansion_id=expected))
                assert facts[0].context.document_ids == (expected,)
            assert [name async for name, _ in at.ports.store.documents.scan("synthesizer.told")] == []

    asyncio.run(scenario())
