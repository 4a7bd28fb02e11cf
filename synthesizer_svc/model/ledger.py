"""Accounts of what models cost: entries in the store, from which every replica computes the same balance.

An account is a chain of documents ``<account>/<number>``. Entries are only added, each at the next number, which
exactly one writer gets (``Documents.create``); so nobody adds to a balance that they have not seen, without a lock,
and what was spent survives the cache, every process and every disagreement about who held a lock. Numbers have no
holes, so one who is behind finds it out at the first entry they write.

*Reserved* is what a call may cost at most, written before it is sent; *settled* is what it did cost. A call whose
process died is never settled: it stays reserved, because it may have been billed.

Every so many entries whoever wrote the last one keeps the sum so far, which follows from the entries alone. A process
that starts reads the sum and what came after it, not a day's whole history.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from shared.errors import Unavailable
from shared.usage import UNKNOWN

ENTRIES = "model.ledger"
SUMS = "model.ledger.sums"
"""Collection: account -> its balance after some number of entries. An older one does, and so does none."""
SUM_EVERY = 256
"""Entries."""
RESERVED, SETTLED = "reserved", "settled"
DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """``cost_micro`` is -1 where no price is known."""

    tokens: int = 0
    cost_micro: int = 0

    def plus(self, other: Amount) -> Amount:
        """Unknown as soon as one of both is."""
        unknown = UNKNOWN in (self.cost_micro, other.cost_micro)
        return Amount(
            tokens=self.tokens + other.tokens, cost_micro=UNKNOWN if unknown else self.cost_micro + other.cost_micro
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """``until_ns``: when a call that was not settled by then never will be. The rest is for people who read them."""

    kind: str
    call: str
    amount: Amount
    at_ns: int
    until_ns: int = 0
    search_id: str = ""
    endpoint: str = ""

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def entry_of(plain: Mapping[str, Any]) -> Entry:
    """What ``Entry.plain`` wrote."""
    return Entry(**{**plain, "amount": Amount(**plain["amount"])})


@dataclass(kw_only=True)
class Account:
    """One account as far as it has been read."""

    name: str
    length: int = 0
    settled: Amount = field(default_factory=Amount)
    open: dict[str, Entry] = field(default_factory=dict)
    """Reservations that were not settled, in order."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    """Held while an entry is decided on and written; notified of what this process writes."""

    @property
    def spent(self) -> Amount:
        """What was settled, and the most that the open ones may cost."""
        return self._with(self.open.values())

    def surely_spent(self, now_ns: int) -> Amount:
        """The same, without what calls that are still running may give back."""
        return self._with(entry for entry in self.open.values() if entry.until_ns <= now_ns)

    def take(self, entry: Entry) -> None:
        """The next entry of the chain."""
        self.length += 1
        if entry.kind == RESERVED:
            self.open[entry.call] = entry
        elif self.open.pop(entry.call, None) is not None:
            self.settled = self.settled.plus(entry.amount)

    def plain(self) -> dict[str, Any]:
        """What ``begin_at`` reads."""
        open_ = [entry.plain() for entry in self.open.values()]
        return {"length": self.length, "settled": asdict(self.settled), "open": open_}

    def begin_at(self, plain: Mapping[str, Any]) -> None:
        """Go on from what ``plain`` returned, as if all entries before had been taken."""
        self.length, self.settled = plain["length"], Amount(**plain["settled"])
        self.open = {entry["call"]: entry_of(entry) for entry in plain["open"]}

    def _with(self, entries: Iterable[Entry]) -> Amount:
        spent = self.settled
        for entry in entries:
            spent = spent.plus(entry.amount)
        return spent


class Entries(Protocol):
    """The part of ``shared.store.Documents`` that a ledger needs."""

    async def create(self, collection: str, key: str, value: Mapping[str, object]) -> dict[str, object] | None: ...
    async def get(self, collection: str, key: str) -> dict[str, object] | None: ...
    async def put(self, collection: str, key: str, value: Mapping[str, object]) -> None: ...
    def scan(
        self, collection: str, prefix: str = "", after: str = ""
    ) -> AsyncIterator[tuple[str, dict[str, object]]]: ...


class Ledger:
    """Reads and writes accounts. Every call raises ``Unavailable`` while the store cannot be reached."""

    def __init__(self, documents: Entries, accounts_max: int = 10_000) -> None:
        self._documents, self._accounts_max = documents, accounts_max
        self._accounts: dict[str, Account] = {}

    def account(self, name: str) -> Account:
        """The account as this process knows it; ``catch_up`` brings it up to date."""
        if name not in self._accounts:
            while len(self._accounts) >= self._accounts_max:
                self._accounts.pop(next(iter(self._accounts)))
            self._accounts[name] = Account(name=name)
        return self._accounts[name]

    async def catch_up(self, account: Account) -> None:
        """Read what others have written."""
        if not account.length:
            known = await self._documents.get(SUMS, account.name)
            if known is not None:
                account.begin_at(known)
        prefix = f"{account.name}/"
        after = _key(account, account.length - 1) if account.length else ""
        async for _, plain in self._documents.scan(ENTRIES, prefix, after):
            account.take(entry_of(plain))

    async def write(self, account: Account, entry: Entry) -> bool:
        """Add ``entry`` to ``account`` as known. False: another entry was first, and is known now."""
        plain = entry.plain()
        standing = await self._documents.create(ENTRIES, _key(account, account.length), plain)
        mine = standing is None or standing == plain  # written before, and the answer was lost
        account.take(entry if standing is None else entry_of(standing))
        if mine and account.length % SUM_EVERY == 0:
            with suppress(Unavailable):  # the entries hold it all
                await self._documents.put(SUMS, account.name, account.plain())
        return mine

    async def add(self, account: Account, entry: Entry) -> None:
        """Add ``entry`` wherever the chain ends."""
        while not await self.write(account, entry):
            await self.catch_up(account)


def _key(account: Account, number: int) -> str:
    return f"{account.name}/{number:0{DIGITS}d}"
