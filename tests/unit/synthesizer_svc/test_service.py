"""The service over memory ports: every request answered exactly, once in effect, whatever is delivered twice."""

from __future__ import annotations

import asyncio

import pytest

from shared import envelopes, ids
from shared.errors import Poison
from shared.events import (
    Bound,
    CandidateProduced,
    CandidateRejected,
    ExpansionFailed,
    KernelRef,
    Memory,
    OperatorRef,
    SearchCancelled,
)
from synthesizer_svc.no_knowledge import NoKnowledge
from synthesizer_svc.schedule.schedule import Schedule
from synthesizer_svc.settings import Limits, Settings
from tests.fakes.talker import Talker
from tests.unit.synthesizer_svc.desk import KERNEL, Desk, OneDocument, desk, script
from tests.unit.synthesizer_svc.spaces import POINTS, SPACE, TextLowering, failed, measured


def test_a_request_is_answered_by_exactly_count_candidates_whose_blobs_exist():
    async def scenario():
        async with desk() as at:
            facts = await at.facts(await at.request(count=3))
            assert [type(f) for f in facts] == [CandidateProduced] * 3
            assert [f.index for f in facts] == [0, 1, 2]
            assert len({f.kernel.kernel_id for f in facts}) == 3
            for fact in facts:
                kernel = fact.kernel
                assert fact.candidate_id == ids.derive("e1", "candidate", fact.index)
                assert kernel.kernel_id == ids.derive("cpp", kernel.source_hash, *kernel.flags, kernel.entry)
                await at.ports.store.blobs.get(kernel.source_hash)
                schedule = Schedule.from_json(await at.ports.store.blobs.get(kernel.schedule_hash))
                assert schedule == SPACE.complete(schedule)

    asyncio.run(scenario())


def test_a_request_delivered_again_publishes_the_same_bytes_and_writes_nothing_anew():
    async def scenario():
        async with desk() as at:
            request = await at.request()
            first = await at.deliver(request)
            at.ports.clock.advance(10**9)
            lowered = at.lowering.asked
            again = await at.deliver(request)
            assert first == again
            assert at.lowering.asked == lowered

    asyncio.run(scenario())


def test_a_new_process_that_takes_over_publishes_the_same_bytes():
    async def scenario():
        async with desk() as at:
            request = await at.request()
            first = await at.deliver(request)
            other = Desk(at.ports, Settings(), TextLowering(refuses=("twice",)), NoKnowledge())
            assert await other.deliver(request) == first

    asyncio.run(scenario())


def test_two_processes_that_write_for_one_expansion_at_once_publish_the_answers_of_one():
    async def scenario():
        async with desk() as at:
            request = await at.request()
            first = await at.deliver(request)
            store, get = at.ports.store, at.ports.store.documents.get

            async def had_looked_before(collection, key):
                store.documents.get = get

            store.documents.get = had_looked_before
            other = Desk(at.ports, Settings(), TextLowering(refuses=("twice",)), NoKnowledge())
            assert await other.deliver(request) == first

    asyncio.run(scenario())


def test_an_operator_is_lowered_once_for_all_expansions():
    async def scenario():
        async with desk() as at:
            requests = [await at.request(expansion_id=f"e{i}") for i in range(4)]
            await asyncio.gather(*(at.service.subscriptions[0].handler(_cause(at, r)) for r in requests))
            assert at.lowering.asked == 1

    asyncio.run(scenario())


def _cause(at, event):
    return envelopes.envelope(event, cause_id="cause", source="/test", clock=at.ports.clock)


def test_kernels_the_search_has_are_never_produced_again_until_it_is_exhausted():
    async def scenario():
        async with desk() as at:
            known: list[str] = []
            parent = await at.kernel(SPACE.default())
            produced, rounds = [], 0
            while rounds < POINTS:
                rounds += 1
                facts = await at.facts(
                    await at.request(
                        expansion_id=f"e{rounds}",
                        count=5,
                        known_kernel_ids=tuple(known),
                        parent_ids=("c1",),
                        parents=(parent,),
                        parent_evaluations=(measured(),),
                    )
                )
                assert len(facts) == 5
                fresh = [f.kernel.kernel_id for f in facts if isinstance(f, CandidateProduced)]
                assert not set(fresh) & set(known)
                known += fresh
                produced += fresh
                if len(fresh) < 5:
                    break
            rejected = [f for f in facts if isinstance(f, CandidateRejected)]
            assert {f.code for f in rejected} == {"exhausted"}
            assert "nothing left near c1" in rejected[0].detail
            assert sorted(f.index for f in facts) == [0, 1, 2, 3, 4]
            # Two schedules that render to the same text count once.
            assert len(produced) == len(set(produced))

    asyncio.run(scenario())


def test_the_same_seed_writes_the_same_kernels_and_another_seed_others():
    async def kernels(seed):
        async with desk() as at:
            return [f.kernel.kernel_id for f in await at.facts(await at.request(seed=seed, count=4))]

    assert asyncio.run(kernels(1)) == asyncio.run(kernels(1))
    assert asyncio.run(kernels(1)) != asyncio.run(kernels(2))


def test_an_operator_that_cannot_be_lowered_fails_the_expansion_and_names_the_node():
    async def scenario():
        async with desk(lowering=TextLowering(refuses=("twice",))) as at:
            (fact,) = await at.facts(await at.request())
            assert isinstance(fact, ExpansionFailed)
            assert fact.code == "unsupported_operator"
            assert fact.detail == "aten._fft_r2c: no lowering for complex numbers"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"chip": "abacus"}, "unsupported_chip"), ({"languages": ("triton",)}, "unsupported_language")],
)
def test_what_nobody_here_can_write_for_fails_the_expansion(changes, code):
    async def scenario():
        async with desk() as at:
            (fact,) = await at.facts(await at.request(**changes))
            assert isinstance(fact, ExpansionFailed)
            assert fact.code == code

    asyncio.run(scenario())


def test_a_language_that_no_model_can_be_told_of_fails_the_expansion_and_nothing_else():
    async def scenario():
        model = Talker([])
        async with desk(model=model, share=100) as at:
            (fact,) = await at.facts(await at.request(languages=("cobol",)))
            assert isinstance(fact, ExpansionFailed)
            assert fact.code == "unsupported_language"
        assert not model.asked

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "changes",
    [
        {"operator": OperatorRef(name="gone", source_hash="0" * 64)},
        {"parents": (KernelRef(kernel_id="k", language="cpp", source_hash="0" * 64),)},
        {"count": 0},
    ],
)
def test_a_request_that_refers_to_nothing_is_poison(changes):
    async def scenario():
        async with desk() as at:
            await at.deliver(await at.request(**changes))

    with pytest.raises(Poison):
        asyncio.run(scenario())


def test_another_event_on_the_topic_is_poison():
    async def scenario():
        async with desk() as at:
            await at.deliver(SearchCancelled(search_id="s1", reason="no"))

    with pytest.raises(Poison):
        asyncio.run(scenario())


def test_a_candidate_records_what_it_saw():
    async def scenario():
        knowledge = OneDocument()
        async with desk(knowledge=knowledge) as at:
            facts = await at.facts(
                await at.request(
                    count=1,
                    memory=Memory.PARENT_AND_SIBLINGS,
                    parent_ids=("c1",),
                    parents=(await at.kernel(SPACE.default()),),
                    parent_evaluations=(measured(Bound.MEMORY),),
                    sibling_ids=("c2",),
                    siblings=(await at.kernel(SPACE.default().with_choice("g0.unroll", 8)),),
                    negative_ids=("c3",),
                    negative=(await at.kernel(SPACE.default().with_choice("g0.unroll", 4)),),
                )
            )
            context = facts[0].context
            assert context.memory is Memory.PARENT_AND_SIBLINGS
            assert context.diagnosis is Bound.MEMORY
            assert (context.sibling_ids, context.negative_ids) == (("c2",), ("c3",))
            assert context.document_ids == ("guidance/streams",)
            # The skill halves the time, so its move goes first and says on what grounds.
            assert facts[0].move.name == "pointwise:stores=streaming"
            assert context.skill_ids == ("skill-pointwise:stores=streaming",)
            ((query, limit),) = knowledge.queries
            assert (query.chip, query.language, query.bound) == ("cpu-x86_64", "cpp", Bound.MEMORY)
            assert query.operator_class == "pointwise reduction"
            assert limit == Limits().documents_max

    asyncio.run(scenario())


def test_a_failed_parents_error_is_what_documents_are_asked_for():
    async def scenario():
        knowledge = OneDocument()
        async with desk(knowledge=knowledge) as at:
            parent = await at.kernel(SPACE.default())
            await at.facts(await at.request(parent_ids=("c1",), parents=(parent,), parent_evaluations=(failed(),)))
            assert knowledge.queries[0][0].error == "COMPILE_ERROR expected ;"

    asyncio.run(scenario())


def test_a_clean_expansion_does_not_see_its_parent():
    async def scenario():
        async with desk() as at:
            parent = await at.kernel(SPACE.default().with_choice("g0.unroll", 8))
            facts = await at.facts(
                await at.request(memory=Memory.CLEAN, parent_ids=("c1",), parents=(parent,), siblings=(parent,))
            )
            assert facts[0].move.name == "draft:default"
            assert facts[0].context.sibling_ids == ()
            assert facts[0].parent_ids == ("c1",)

    asyncio.run(scenario())


def test_a_kernel_no_schedule_wrote_is_followed_by_drafts():
    async def scenario():
        async with desk() as at:
            parent = await at.kernel(None, source=KERNEL)
            facts = await at.facts(await at.request(parent_ids=("c1",), parents=(parent,)))
            assert facts[0].move.name == "draft:default"

    asyncio.run(scenario())


def test_with_a_model_both_write_and_the_models_kernel_is_a_candidate_with_its_cost(tmp_path):
    async def scenario():
        url = script(tmp_path, {"text": f"Does less.\n```cpp\n{KERNEL}\n```", "input_tokens": 900, "output_tokens": 40})
        async with desk(model_url=url, knowledge=OneDocument()) as at:
            scheduled, written = await at.facts(await at.request(count=2))
            assert written.move.name == "rewrite"
            assert written.move.rationale == "Does less."
            assert (written.usage.input_tokens, written.usage.output_tokens) == (900, 40)
            assert await at.ports.store.blobs.get(written.kernel.source_hash) == f"{KERNEL}\n".encode()
            assert written.kernel.schedule_hash == ""
            prompt = (await at.ports.store.blobs.get(written.context.prompt_hash)).decode()
            assert "# Operator: twice" in prompt
            assert "Write once." in prompt
            assert scheduled.move.name == "draft:default"
            assert scheduled.context.prompt_hash == ""

    asyncio.run(scenario())


def test_a_model_writes_alone_where_the_schedules_cannot(tmp_path):
    async def scenario():
        answers = [{"text": f"```cpp\n{KERNEL}\n// {i}\n```"} for i in range(2)]
        async with desk(model_url=script(tmp_path, *answers), lowering=TextLowering(refuses=("twice",))) as at:
            facts = await at.facts(await at.request(count=2))
            assert [f.move.name for f in facts] == ["rewrite", "rewrite"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"text": "I cannot help with that."}, "refused"),
        ({"text": "Try unrolling."}, "no_block"),
        ({"text": f"```cpp\n{KERNEL}"}, "truncated"),
        ({"text": f"```cpp\n{KERNEL}\n```", "truncated": True}, "truncated"),
        ({"error": "endpoint", "text": "503"}, "endpoint"),
    ],
)
def test_a_bad_answer_is_a_rejected_candidate_with_the_reason(tmp_path, answer, code):
    async def scenario():
        async with desk(model_url=script(tmp_path, answer), share=100) as at:
            (fact,) = await at.facts(await at.request(count=1))
            assert isinstance(fact, CandidateRejected)
            assert fact.code == code

    asyncio.run(scenario())


def test_a_kernel_the_model_wrote_before_is_a_duplicate(tmp_path):
    async def scenario():
        answer = {"text": f"```cpp\n{KERNEL}\n```"}
        async with desk(model_url=script(tmp_path, answer, answer), share=100) as at:
            first, second = await at.facts(await at.request(count=2))
            assert isinstance(first, CandidateProduced)
            assert second.code == "duplicate"
            assert first.kernel.kernel_id in second.detail

    asyncio.run(scenario())


def test_a_search_that_renders_too_much_says_so():
    async def scenario():
        async with desk(renders_max=3) as at:
            facts = await at.facts(await at.request(count=5))
            assert [type(f) for f in facts] == [CandidateProduced] * 3 + [CandidateRejected] * 2
            assert facts[-1].detail == "3 schedules rendered without finding enough new kernels"

    asyncio.run(scenario())
