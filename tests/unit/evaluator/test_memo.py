"""Verdicts remembered: the first writer's stands, and what says nothing about the kernel is forgotten."""

from __future__ import annotations

from dataclasses import replace

from evaluator_svc.memo import COLLECTION, Memo, key
from shared.events import Evaluation, Purpose, Status
from shared.store.memory import MemoryStore
from tests.aio import on_loop
from tests.unit.evaluator.pooling import request

WRONG = Evaluation(status=Status.WRONG_RESULT)
CRASHED = Evaluation(status=Status.RUNTIME_ERROR)


@on_loop
async def test_of_two_workers_that_judged_one_kernel_both_give_the_first_ones_verdict() -> None:
    async with MemoryStore() as store:
        one, other = Memo(store.documents), Memo(store.documents)
        assert await one.keep(request("a"), WRONG) == WRONG
        assert await other.keep(request("a"), CRASHED) == replace(WRONG, memoised=True)
        assert await one.recall(request("a")) == replace(WRONG, memoised=True)


@on_loop
async def test_keeping_again_what_was_kept_does_not_make_it_a_memory() -> None:
    async with MemoryStore() as store:
        memo = Memo(store.documents)
        assert await memo.keep(request("a"), WRONG) == WRONG
        assert await memo.keep(request("a"), WRONG) == WRONG


@on_loop
async def test_our_failures_are_not_remembered() -> None:
    async with MemoryStore() as store:
        memo = Memo(store.documents)
        await memo.keep(request("a"), Evaluation(status=Status.INFRASTRUCTURE))
        assert await memo.recall(request("a")) is None


@on_loop
async def test_a_document_that_cannot_be_read_is_replaced() -> None:
    async with MemoryStore() as store:
        memo = Memo(store.documents)
        await store.documents.put(COLLECTION, key(request("a")), {"evaluation": {"status": "UNHEARD_OF"}})
        assert await memo.recall(request("a")) is None
        assert await memo.keep(request("a"), WRONG) == WRONG
        assert await memo.recall(request("a")) == replace(WRONG, memoised=True)


def test_a_final_measurement_is_remembered_apart() -> None:
    assert key(request("a")) != key(replace(request("a"), purpose=Purpose.FINAL))
