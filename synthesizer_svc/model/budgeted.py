"""Budgets of tokens and money, for a search and for a day, that stop before they are exceeded.

The most that an attempt can cost is reserved before it is sent and settled to what it did cost afterwards. What does
not fit is not sent. While calls are running that may give something back, it is waited for; when none is, the budget
is spent and the search pauses. An attempt without a known end (a killed process, a cancelled call) stays reserved.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from shared.clock import SECOND_NS, Clock
from shared.events import ModelBudget, Usage
from shared.patience import patiently
from shared.usage import MICRO, UNKNOWN, cost_text
from synthesizer_svc.model import Completion, CompletionRequest, Model, ModelError, ModelErrorCode
from synthesizer_svc.model.estimate import most
from synthesizer_svc.model.ledger import RESERVED, SETTLED, Account, Amount, Entries, Entry, Ledger
from synthesizer_svc.model.prices import Prices, dearest_micro

LOOK_AGAIN_S = 0.5
"""How often somebody who waits for money looks what other processes gave back."""
GRACE_S = 30.0
"""After its deadline, for a call to be settled; then it never will be."""
SETTLE_S = 30.0
"""For what a call cost to be written down, while the store is away. What is not stays reserved, which errs on the safe
side; a caller who gave up, and a service that stops, are held no longer."""
NO_BUDGET = ModelBudget()
PAUSE, END = "pause", "end"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """``MODEL_BUDGET_*``. Zero means "no limit".

    Raises:
        ValueError: a negative limit, one so small that it would become 0, which is none, or an unknown word.
    """

    tokens: int = 0
    """For a search that names no limit of its own, prompts and answers together."""
    cost: float = 0.0
    """For a search that names no limit of its own, in the currency of the endpoints' prices."""
    day_tokens: int = 0
    """For all searches of this store and ``models check`` together, from midnight to midnight UTC."""
    day_cost: float = 0.0
    """The same, in currency."""
    days_url: str = ""
    """Store of the days' accounts; empty: with the searches. By default, where ``STORE_URL`` names no server, a file in
    the user's data directory, because searches on one machine have a store each."""
    when_spent: str = PAUSE
    """What a search does for which nobody can write since no budget allows another call: ``pause`` until there is a
    larger one, or ``end`` with what it found."""

    def __post_init__(self) -> None:
        if min(self.tokens, self.cost, self.day_tokens, self.day_cost) < 0:
            raise ValueError("a limit is negative")
        if any(0 < limit < 1 / MICRO for limit in (self.cost, self.day_cost)):
            raise ValueError(f"a limit of money is below {1 / MICRO:.6f}")
        if self.when_spent not in (PAUSE, END):
            raise ValueError(f"when_spent is {self.when_spent}, expected {PAUSE} or {END}")

    def of_a_search(self, own: ModelBudget) -> ModelBudget:
        """What holds for a search: its own limits, and these where it has none."""
        return ModelBudget(tokens=own.tokens or self.tokens, cost_micro=own.cost_micro or round(self.cost * MICRO))

    @property
    def of_a_day(self) -> ModelBudget:
        return ModelBudget(tokens=self.day_tokens, cost_micro=round(self.day_cost * MICRO))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """An account with what may be spent from it; ``whose`` names it to people."""

    ledger: Ledger
    account: Account
    limit: ModelBudget
    whose: str
    hint: str


class Bill:
    """What an attempt cost: nothing until it is sent, then None until that is known."""

    def __init__(self) -> None:
        self.usage: Usage | None = Usage()

    def sent(self) -> None:
        self.usage = None

    def paid(self, usage: Usage) -> None:
        self.usage = usage


class Budgets:
    """The accounts of all searches and days. Every call raises ``Unavailable`` while the store cannot be reached."""

    def __init__(
        self, documents: Entries, clock: Clock, settings: BudgetSettings, *, days: Entries | None = None
    ) -> None:
        """``days`` keep the accounts of days, where those are not among ``documents``."""
        self._searches, self._days = Ledger(documents), Ledger(days or documents)
        self._clock, self._settings = clock, settings

    @asynccontextmanager
    async def paying(
        self, request: CompletionRequest, *, prices: Prices, endpoint: str, deadline_s: float
    ) -> AsyncIterator[Bill]:
        """An attempt at ``request``, which may take ``deadline_s``, waiting for its money included.

        Raises:
            ModelError: a budget does not allow it; it was not sent.
        """
        until_ns = self._clock.now_ns() + round((deadline_s + GRACE_S) * SECOND_NS)
        waits_until_ns = self._clock.monotonic_ns() + round(deadline_s * SECOND_NS)
        attempt = most(request)
        amount = Amount(tokens=_tokens(attempt), cost_micro=dearest_micro(attempt, prices))
        entry = Entry(
            kind=RESERVED,
            call=secrets.token_hex(8),
            amount=amount,
            at_ns=self._clock.now_ns(),
            until_ns=until_ns,
            search_id=request.search_id,
            endpoint=endpoint,
        )
        reserved: list[Limited] = []
        bill = Bill()
        try:
            for limited in self._limited(request):
                await self._reserve(limited, entry, waits_until_ns)
                reserved.append(limited)
        except BaseException:  # also when the caller gives up waiting: nothing was sent
            await self._settle(reserved, entry, Amount())
            raise
        try:
            yield bill
        finally:
            if bill.usage is not None:  # otherwise nobody knows, and it stays reserved
                _compare(_amount(bill.usage), entry)
                await self._settle(reserved, entry, _amount(bill.usage))

    async def spent(self, search_id: str) -> Amount:
        """What a search has spent, and may have."""
        account = self._searches.account(_search(search_id))
        async with account.changed:
            await self._searches.catch_up(account)
            return account.spent

    def _limited(self, request: CompletionRequest) -> list[Limited]:
        """The accounts that pay for ``request``: every call is written down, whether or not there is a limit."""
        day = datetime.fromtimestamp(self._clock.now_ns() // SECOND_NS, UTC).date().isoformat()
        today = Limited(
            ledger=self._days,
            account=self._days.account(f"day/{day}"),
            limit=self._settings.of_a_day,
            whose=f"the budget of {day}",
            hint="MODEL_BUDGET_DAY_*; it is another day at midnight UTC",
        )
        if not request.search_id:
            return [today]
        own = Limited(
            ledger=self._searches,
            account=self._searches.account(_search(request.search_id)),
            limit=self._settings.of_a_search(request.budget),
            whose="the search's budget",
            hint="raise it with --model-budget or --model-tokens",
        )
        return [own, today]

    async def _reserve(self, limited: Limited, entry: Entry, until_ns: int) -> None:
        """Write ``entry``, waiting for calls that are running where their money may be enough, until ``until_ns`` on
        the monotonic clock.

        Raises:
            ModelError: it does not fit.
        """
        ledger, account = limited.ledger, limited.account
        async with account.changed:
            if not account.length:
                await ledger.catch_up(account)
            while True:
                if _fits(account.spent, entry.amount, limited.limit):
                    if await ledger.write(account, entry):
                        return
                    continue
                await ledger.catch_up(account)
                if _fits(account.spent, entry.amount, limited.limit):
                    continue
                running = account.surely_spent(self._clock.now_ns())
                if not _fits(running, entry.amount, limited.limit):
                    raise _refused(limited, running, entry, pauses=True)
                if self._clock.monotonic_ns() >= until_ns:
                    raise _refused(limited, account.spent, entry, pauses=False)
                await _notified(account.changed, LOOK_AGAIN_S)

    async def _settle(self, accounts: list[Limited], reserved: Entry, amount: Amount) -> None:
        settled = replace(reserved, kind=SETTLED, amount=amount, at_ns=self._clock.now_ns(), until_ns=0)
        for each in accounts:
            async with each.account.changed:
                try:
                    async with asyncio.timeout(SETTLE_S):
                        await patiently(partial(each.ledger.add, each.account, settled), "settle what a model cost")
                except TimeoutError:
                    log.warning("%s: call %s stays reserved: the store is away", each.account.name, settled.call)
                each.account.changed.notify_all()


class BudgetedModel:
    """A model whose every call is one attempt, and paid for."""

    def __init__(self, inner: Model, budgets: Budgets, prices: Prices) -> None:
        self._inner, self._budgets, self._prices = inner, budgets, prices

    @property
    def name(self) -> str:
        return self._inner.name

    async def complete(self, request: CompletionRequest) -> Completion:
        async with self._budgets.paying(
            request, prices=self._prices, endpoint=self.name, deadline_s=request.deadline_s
        ) as bill:
            bill.sent()
            try:
                completion = await self._inner.complete(request)
            except ModelError as error:
                bill.paid(error.usage)
                raise
            bill.paid(completion.usage)
            return completion


def _fits(spent: Amount, more: Amount, limit: ModelBudget) -> bool:
    after = spent.plus(more)
    if limit.cost_micro and (after.cost_micro == UNKNOWN or after.cost_micro > limit.cost_micro):
        return False
    return not limit.tokens or after.tokens <= limit.tokens


def _refused(limited: Limited, spent: Amount, entry: Entry, *, pauses: bool) -> ModelError:
    limit, more = limited.limit, entry.amount
    if limit.cost_micro and UNKNOWN in (more.cost_micro, spent.cost_micro):
        whose = f"endpoint {entry.endpoint} has" if more.cost_micro == UNKNOWN else "some calls before had"
        detail = (
            f"{whose} no known price, so {limited.whose} of {cost_text(limit.cost_micro)} cannot be kept: "
            f"configure prices, or limit tokens instead"
        )
        return ModelError(ModelErrorCode.BUDGET, detail, pauses=True)
    if limit.cost_micro and spent.cost_micro + more.cost_micro > limit.cost_micro:
        told = cost_text(limit.cost_micro), cost_text(spent.cost_micro), cost_text(more.cost_micro), ""
    else:
        told = f"{limit.tokens:,}", f"{spent.tokens:,}", f"{more.tokens:,}", " tokens"
    of, gone, needed, unit = told
    detail = f"{limited.whose} of {of}{unit}: {gone} are spent, and the next call may need {needed} ({limited.hint})"
    return ModelError(ModelErrorCode.BUDGET, detail, pauses=pauses)


async def _notified(condition: asyncio.Condition, seconds: float) -> None:
    """Until ``condition``, which is held, is notified, or ``seconds`` have passed."""
    try:
        async with asyncio.timeout(seconds):
            await condition.wait()
    except TimeoutError:
        return


def _compare(paid: Amount, reserved: Entry) -> None:
    """Say so where an endpoint counts more than a call could take: budgets cannot hold what nobody could foresee."""
    if paid.tokens > reserved.amount.tokens or paid.cost_micro > reserved.amount.cost_micro != UNKNOWN:
        log.warning(
            "model endpoint %s counts %d tokens (cost %s) for a call that was to take %d (%s) at most: "
            "budgets may be exceeded by such differences",
            reserved.endpoint, paid.tokens, cost_text(paid.cost_micro),
            reserved.amount.tokens, cost_text(reserved.amount.cost_micro),
        )  # fmt: skip


def _amount(usage: Usage) -> Amount:
    return Amount(tokens=_tokens(usage), cost_micro=usage.cost_micro)


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def _search(search_id: str) -> str:
    return f"search/{search_id}"
