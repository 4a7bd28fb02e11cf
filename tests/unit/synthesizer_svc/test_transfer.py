"""A schedule of another chip as a draft: what is carried over, what is said about it, and what becomes of it."""

from __future__ import annotations

import asyncio

import pytest

from shared.errors import Poison
from shared.events import CandidateProduced, CandidateRejected, Memory, Prior
from synthesizer_svc.schedule.schedule import Decision, Schedule, Space
from synthesizer_svc.schedule.transfer import seeded, transfer
from tests.unit.synthesizer_svc.desk import desk
from tests.unit.synthesizer_svc.spaces import SPACE

ELSEWHERE = Schedule(
    choices=(("g0.lmul", 4), ("g0.unroll", 8), ("g1.accumulators", 16), ("g1.layout", "packed"), ("g7.rows", 2))
)
"""Two choices that ``SPACE`` offers, one of a value it does not, one of a decision and one of a group it has not."""


def a_prior(schedule_hash: str = "h", **changes) -> Prior:
    given = {"search_id": "s0", "candidate_id": "c0", "chip": "riscv-rvv", "language": "c-rvv", "kernel_id": "k0"}
    return Prior(**(given | {"schedule_hash": schedule_hash, "found": "1.84x over eager (measured)"} | changes))


def test_decisions_that_exist_with_their_value_are_carried_over_and_the_others_stay_default():
    moved = transfer(SPACE, ELSEWHERE)
    assert moved.carried == (("g0.unroll", 8), ("g1.layout", "packed"))
    assert moved.left == ("g0.lmul", "g1.accumulators", "g7.rows")
    expected = SPACE.default().with_choice("g0.unroll", 8).with_choice("g1.layout", "packed")
    assert moved.schedule == expected


def test_a_schedule_comes_back_from_its_own_space_unchanged():
    schedule = SPACE.default().with_choice("g1.accumulators", 4)
    moved = transfer(SPACE, schedule)
    assert (moved.schedule, moved.left) == (schedule, ())


def test_of_a_space_that_shares_nothing_the_default_is_left():
    other = Space(decisions=(Decision(group="g0", name="warps", values=(1, 2), default=1),))
    moved = transfer(other, ELSEWHERE)
    assert (moved.schedule, moved.carried) == (other.default(), ())


def test_a_number_and_its_text_are_different_values():
    assert transfer(SPACE, Schedule(choices=(("g0.unroll", "8"),))).carried == ()


def test_the_move_says_where_the_draft_is_from_and_that_it_is_untested():
    move = seeded(SPACE, ELSEWHERE, a_prior()).move
    assert move.name == "draft:prior"
    assert move.rationale.startswith(
        "seeded from riscv-rvv's schedule of kernel k0 (1.84x over eager (measured) there), untested here: 2 of its 5 "
        "decisions carried over; not offered here: g0.lmul, g1.accumulators, g7.rows"
    )
    told = {entry.name: entry.value for entry in move.parameters}
    assert told["search"] == "s0"
    assert told["candidate"] == "c0"
    assert told["g0.unroll"] == "8"
    assert "g0.lmul" not in told


def test_each_prior_of_an_expansion_becomes_the_candidate_of_its_index():
    async def scenario():
        async with desk() as at:
            one = await at.ports.store.blobs.put(ELSEWHERE.to_json())
            two = await at.ports.store.blobs.put(SPACE.default().with_choice("g0.stores", "streaming").to_json())
            priors = (a_prior(one), a_prior(two, chip="nvidia-sm_90", candidate_id="c1"))
            facts = await at.facts(await at.request(count=2, priors=priors, memory=Memory.CLEAN))
            assert [type(fact) for fact in facts] == [CandidateProduced] * 2
            assert [fact.move.name for fact in facts] == ["draft:prior"] * 2
            for fact, prior in zip(facts, priors, strict=True):
                assert f"seeded from {prior.chip}'s" in fact.move.rationale
                assert fact.parent_ids == ()
                written = Schedule.from_json(await at.ports.store.blobs.get(fact.kernel.schedule_hash))
                assert written == SPACE.complete(written)

    asyncio.run(scenario())


def test_a_prior_that_comes_to_a_known_kernel_is_a_duplicate_and_says_which():
    async def scenario():
        async with desk() as at:
            (default,) = await at.facts(await at.request(count=1))
            nothing = await at.ports.store.blobs.put(Schedule(choices=(("g9.rows", 2),)).to_json())
            known = (default.kernel.kernel_id,)
            request = await at.request(
                expansion_id="e2", count=1, priors=(a_prior(nothing),), known_kernel_ids=known, memory=Memory.CLEAN
            )
            (fact,) = await at.facts(request)
            assert isinstance(fact, CandidateRejected)
            assert fact.code == "duplicate"
            assert "0 of its 1 decisions carried over" in fact.detail

    asyncio.run(scenario())


def test_priors_fill_their_indices_and_ordinary_drafts_the_rest():
    async def scenario():
        async with desk() as at:
            blob = await at.ports.store.blobs.put(ELSEWHERE.to_json())
            facts = await at.facts(await at.request(count=3, priors=(a_prior(blob),), memory=Memory.CLEAN))
            assert [fact.move.name for fact in facts][:2] == ["draft:prior", "draft:default"]
            assert len({fact.kernel.kernel_id for fact in facts}) == 3

    asyncio.run(scenario())


@pytest.mark.parametrize("text", [b"[]", b"not json"])
def test_a_blob_that_is_no_schedule_is_poison(text):
    async def scenario():
        async with desk() as at:
            blob = await at.ports.store.blobs.put(text)
            with pytest.raises(Poison, match="is not a schedule"):
                await at.facts(await at.request(count=1, priors=(a_prior(blob),)))

    asyncio.run(scenario())
