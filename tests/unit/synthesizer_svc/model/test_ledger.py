"""A process that starts knows what an account spent without reading all of its history, and never knows less."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from shared.errors import Unavailable
from shared.store.memory import MemoryDocuments
from shared.usage import UNKNOWN
from synthesizer_svc.model.ledger import ENTRIES, RESERVED, SETTLED, SUM_EVERY, SUMS, Amount, Entry, Ledger

DAY = "day/2026-12-02"


class Counting(MemoryDocuments):
    """Counts the entries that were read; ``away``: sums cannot be kept."""

    def __init__(self, *, away: bool = False) -> None:
        super().__init__()
        self.read, self.away = 0, away

    async def scan(self, collection, prefix="", after=""):
        async for found in super().scan(collection, prefix, after):
            self.read += 1
            yield found

    async def put(self, collection, key, value):
        if self.away and collection == SUMS:
            raise Unavailable("the store is away")
        await super().put(collection, key, value)


async def spend(documents, calls: int, *, unsettled: int = 0) -> Amount:
    """A day of ``calls``, of which the first ``unsettled`` died; its balance as the process that wrote it knows it."""
    ledger = Ledger(documents)
    account = ledger.account(DAY)
    for number in range(calls):
        entry = Entry(kind=RESERVED, call=str(number), amount=Amount(tokens=100, cost_micro=100), at_ns=number)
        await ledger.add(account, entry)
        if number >= unsettled:
            await ledger.add(account, replace(entry, kind=SETTLED, amount=Amount(tokens=7, cost_micro=3)))
    return account.spent


async def known_anew(documents) -> Amount:
    ledger = Ledger(documents)
    account = ledger.account(DAY)
    await ledger.catch_up(account)
    return account.spent


@pytest.mark.parametrize("calls", [1, 127, 128, 129, 1000])
@pytest.mark.parametrize("unsettled", [0, 3])
def test_a_new_process_reads_a_sum_and_what_came_after_it(calls, unsettled):
    documents = Counting()
    spent = asyncio.run(spend(documents, calls, unsettled=unsettled))
    assert asyncio.run(known_anew(documents)) == spent
    assert documents.read < SUM_EVERY


def test_an_old_sum_and_none_at_all_say_the_same():
    documents = Counting()
    spent = asyncio.run(spend(documents, 300))
    newest = asyncio.run(documents.get(SUMS, DAY))
    first = asyncio.run(documents.get(SUMS, DAY)) | {"length": 0, "settled": {"tokens": 0, "cost_micro": 0}, "open": []}
    assert newest["length"] == 512
    asyncio.run(documents.put(SUMS, DAY, first))
    assert asyncio.run(known_anew(documents)) == spent
    asyncio.run(documents.delete(SUMS, DAY))
    assert asyncio.run(known_anew(documents)) == spent


def test_a_store_that_goes_away_before_a_sum_is_kept_loses_nothing():
    documents = Counting(away=True)
    spent = asyncio.run(spend(documents, 200))
    assert asyncio.run(documents.get(SUMS, DAY)) is None
    assert asyncio.run(known_anew(documents)) == spent == Amount(tokens=1400, cost_micro=600)


def test_a_call_settled_after_the_sum_in_which_it_was_open_is_spent_once():
    documents = MemoryDocuments()
    asyncio.run(spend(documents, 140, unsettled=1))
    call = asyncio.run(documents.get(ENTRIES, f"{DAY}/{0:010d}"))["call"]

    async def settle_late() -> Amount:
        ledger = Ledger(documents)
        account = ledger.account(DAY)
        await ledger.catch_up(account)
        await ledger.add(account, Entry(kind=SETTLED, call=call, amount=Amount(cost_micro=UNKNOWN), at_ns=1))
        return account.spent

    assert asyncio.run(settle_late()) == asyncio.run(known_anew(documents)) == Amount(tokens=973, cost_micro=UNKNOWN)
