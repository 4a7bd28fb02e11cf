"""A vendor over HTTP with a meter of its own: it bills every question in its own books, and tells of it well or badly.

It is a script of the fault server and speaks both protocols. A question is billed as soon as it arrives, up to the most
that it allowed: every byte of the prompt a token, all of it written to the cache, the longest answer. How the answer
goes wrong is drawn; so is what it says about its price.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from synthesizer_svc.model.prices import Prices
from tests.fakes.dialects import ANTHROPIC, OPENAI, Counts, Dialect, Told, say
from tests.fakes.fault_server import Wire

BUSY_S = 0.02
"""The longest time that an answer takes."""
AROUND_ALL, AROUND_ONE = 64, 16
"""Tokens around a conversation and around each of its texts, at most."""
FREE = Counts(read=0, wrote=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sale:
    """One request: what was billed for it, what it could cost at most, and what its answer says that it cost (None:
    nothing that can be believed). Costs are millionths of the currency.
    """

    customer: str
    manner: str
    most: Counts
    billed: Counts
    told: Counts | None
    prices: Prices

    @staticmethod
    def tokens(of: Counts) -> int:
        return of.read + of.wrote

    def cost_micro(self, of: Counts) -> int:
        """By the vendor's own arithmetic, rounded up."""
        per_million = (
            (of.read - of.cached - of.written) * self.prices.input
            + of.cached * self.prices.cached
            + of.written * self.prices.cache_write
            + of.wrote * self.prices.output
        )
        return -(-per_million // 1_000_000)


@dataclass(slots=True, kw_only=True)
class Ask:
    """A question that is being answered."""

    wire: Wire
    say: Dialect
    billed: Counts
    most: Counts

    @property
    def text(self) -> str:
        return "ok " * self.billed.wrote

    async def begin(self, usage: Told | None = None) -> None:
        await self.wire.begin_stream()
        await say(self.wire, *self.say.opening(usage), self.say.piece(self.text))

    async def end(self, usage: Told | None = None) -> None:
        await say(self.wire, *self.say.closing(self.say.stop, usage), self.say.last)
        await self.wire.end_stream()

    async def tell(self, counts: Counts, reason: str = "") -> None:
        await self.wire.begin_stream()
        await say(self.wire, *self.say.stream(self.text, counts, reason or self.say.stop))
        await self.wire.end_stream()


Manner = Callable[[Ask], Awaitable[Counts | None]]
"""Answers a question, and returns what it told of its price."""


async def well(ask: Ask) -> Counts:
    await ask.tell(ask.billed)
    return ask.billed


async def as_an_object(ask: Ask) -> Counts:
    await ask.wire.answer(200, ask.say.whole(ask.text, ask.say.counted(ask.billed), ask.say.stop))
    return ask.billed


async def to_the_limit(ask: Ask) -> Counts:
    await ask.tell(ask.billed, ask.say.length)
    return ask.billed


async def empty(ask: Ask) -> Counts:
    """Nothing but reasoning that nobody sees."""
    await ask.wire.answer(200, ask.say.whole(None, ask.say.counted(ask.billed), ask.say.stop))
    return ask.billed


async def telling_too_much(ask: Ask) -> Counts:
    """More than it bills, as far as the question allows."""
    await ask.tell(ask.most)
    return ask.most


async def without_usage(ask: Ask) -> None:
    await ask.begin()
    await ask.end()


async def as_an_object_without_usage(ask: Ask) -> None:
    await ask.wire.answer(200, ask.say.whole(ask.text, None, ask.say.stop))


async def with_usage_of_nothing(ask: Ask) -> None:
    await ask.begin()
    await ask.end(ask.say.counted(FREE))


async def counting_at_the_beginning_alone(ask: Ask) -> None:
    """As a proxy that drops the last count, or a server that counts as it goes and forgets to at the end."""
    await ask.begin(ask.say.counted(replace(ask.billed, wrote=1)))
    await ask.end()


async def with_parts_larger_than_the_whole(ask: Ask) -> None:
    told = dict(ask.say.counted(Counts(read=2, wrote=ask.billed.wrote, cached=1)))
    if ask.say is OPENAI:
        told["prompt_tokens_details"] = {"cached_tokens": 3}
    else:
        del told["input_tokens"]
    await ask.begin()
    await ask.end(told)


async def counting_reasoning_beside_the_answer(ask: Ask) -> Counts:
    """As xAI and Gemini do: only the total holds it all."""
    told = dict(ask.say.counted(ask.billed))
    if ask.say is OPENAI:
        told["completion_tokens"] = 1
        told["completion_tokens_details"] = {"reasoning_tokens": ask.billed.wrote - 1}
    await ask.wire.answer(200, ask.say.whole("ok", told, ask.say.stop))
    return ask.billed


async def dying_in_the_middle(ask: Ask) -> None:
    await ask.begin(ask.say.counted(replace(ask.billed, wrote=1)) if ask.say is ANTHROPIC else None)
    ask.wire.close()


async def resetting_in_the_middle(ask: Ask) -> None:
    await ask.begin()
    ask.wire.reset()


async def failing_in_the_middle(ask: Ask) -> None:
    await ask.begin()
    await say(ask.wire, ask.say.error("boom", 500, "server_error"))
    await ask.wire.end_stream()


async def dying_at_once(ask: Ask) -> None:
    ask.wire.close()


async def half_an_object(ask: Ask) -> None:
    await ask.wire.answer(200, b'{"id": "c", "usage": {"prompt_tok')


async def gateway_timeout(ask: Ask) -> None:
    await ask.wire.answer(504)


async def kept_back(ask: Ask) -> None:
    """By a proxy that passes a stream on when it has ended, which takes longer than anybody waits."""
    await ask.wire.hang()


async def ill(ask: Ask) -> Counts:
    await ask.wire.answer(503, ask.say.error("overloaded", None, "overloaded_error"))
    return FREE


async def busy(ask: Ask) -> Counts:
    await ask.wire.answer(429, ask.say.error("slow down", "rate_limit_exceeded", "rate_limit_error"))
    return FREE


TIMES: Mapping[Manner, int] = {
    well: 40, as_an_object: 10, to_the_limit: 5, empty: 3, telling_too_much: 10, without_usage: 10,
    as_an_object_without_usage: 5, with_usage_of_nothing: 5, counting_at_the_beginning_alone: 10,
    with_parts_larger_than_the_whole: 5, counting_reasoning_beside_the_answer: 5, dying_in_the_middle: 10,
    resetting_in_the_middle: 5, failing_in_the_middle: 5, dying_at_once: 5, half_an_object: 5, gateway_timeout: 10,
    ill: 5, busy: 5,
}  # fmt: skip
"""How often each comes, of their sum."""


@dataclass(kw_only=True)
class BillingVendor:
    """A customer is what stands before the colon of a conversation's first message."""

    prices: Prices
    seed: int = 1
    times: Mapping[Manner, int] = field(default_factory=lambda: TIMES)
    of_the_most: float | None = None
    """What is billed, as a share of the most that a question allows; drawn up to all of it by default."""
    conceals: float = 0.0
    """The share of the bill that its answers do not tell of."""
    together: int = 0
    """The first so many questions are answered when all of them are there."""
    sales: list[Sale] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    def __post_init__(self) -> None:
        self._rng, self._all_there = random.Random(self.seed), asyncio.Event()

    def of(self, customer: str) -> list[Sale]:
        """The sales to ``customer``, or to all for an empty name."""
        return [sale for sale in self.sales if customer in ("", sale.customer)]

    async def __call__(self, wire: Wire) -> None:
        asked = wire.request.json
        dialect = ANTHROPIC if wire.request.path.endswith("/messages") else OPENAI
        most = _most(asked)
        billed = self._bill(most)
        manner = self._rng.choices(list(self.times), weights=list(self.times.values()))[0]
        number = len(self.sales)
        first = next(message["content"] for message in asked["messages"] if message["role"] == "user")
        sale = Sale(
            customer=first.partition(":")[0], manner=manner.__name__, most=most, billed=billed, told=None,
            prices=self.prices,
        )  # fmt: skip
        if manner in (ill, busy):
            sale = replace(sale, billed=FREE)
        elif manner is dying_at_once:  # it had begun to read
            sale = replace(sale, billed=replace(billed, wrote=0))
        elif manner is to_the_limit:
            sale = replace(sale, billed=replace(billed, wrote=most.wrote))
        self.sales.append(sale)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if len(self.sales) >= self.together:
                self._all_there.set()
            await self._all_there.wait()
            await asyncio.sleep(self._rng.uniform(0, BUSY_S))
            told = await manner(Ask(wire=wire, say=dialect, billed=self._open(sale.billed), most=most))
        finally:
            self.running -= 1
        self.sales[number] = replace(sale, told=told)

    def _bill(self, most: Counts) -> Counts:
        if self.of_the_most is not None:
            read, wrote = round(most.read * self.of_the_most), round(most.wrote * self.of_the_most)
            return Counts(read=read, wrote=wrote, written=read)
        read = self._rng.choice([most.read, self._rng.randint(most.read // 5, most.read)])
        wrote = self._rng.choice([most.wrote, self._rng.randint(2, most.wrote)])
        cached = self._rng.choice([0, self._rng.randint(0, read)])
        return Counts(read=read, wrote=wrote, cached=cached, written=self._rng.choice([0, read - cached]))

    def _open(self, billed: Counts) -> Counts:
        """What of ``billed`` its answers tell."""
        if not self.conceals:
            return billed
        return Counts(read=round(billed.read * (1 - self.conceals)), wrote=round(billed.wrote * (1 - self.conceals)))


def _most(asked: Mapping[str, object]) -> Counts:
    """What a question allows at most: a token for each byte of its texts, and what stands around them."""
    texts = [message["content"] for message in asked["messages"]]
    texts += [block["text"] for block in asked.get("system", ())]
    read = AROUND_ALL + sum(len(text.encode()) + AROUND_ONE for text in texts)
    return Counts(read=read, wrote=asked["max_tokens"], written=read)
