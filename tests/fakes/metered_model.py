"""A model that keeps its own books: what it bills is drawn, up to the most that a request allows."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from shared.events import Usage
from synthesizer_svc.model import Completion, CompletionRequest, Message, ModelError, ModelErrorCode, Role
from synthesizer_svc.model.estimate import most
from synthesizer_svc.model.prices import Prices, cost_micro

PRICES = Prices(input=3_000_000, output=15_000_000)


@dataclass
class MeteredModel:
    """``billed`` is the truth, in tokens and money; ``failing`` the share of calls that are billed and then fail."""

    seed: int = 1
    failing: float = 0.0
    name: str = "metered"
    prices: Prices = PRICES
    longest_s: float = 20.0
    billed: list[Usage] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    @property
    def tokens(self) -> int:
        return sum(usage.input_tokens + usage.output_tokens for usage in self.billed)

    @property
    def cost_micro(self) -> int:
        return sum(usage.cost_micro for usage in self.billed)

    async def complete(self, request: CompletionRequest) -> Completion:
        limit = most(request)
        read = self._rng.randint(1, limit.input_tokens)
        used = Usage(
            input_tokens=read,
            output_tokens=self._rng.randint(0, limit.output_tokens),
            cached_tokens=self._rng.randint(0, read),
            requests=1,
        )
        usage = Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_tokens=used.cached_tokens,
            cost_micro=cost_micro(used, self.prices),
            requests=1,
        )
        self.billed.append(usage)  # as soon as it is at work: who dies meanwhile pays all the same
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self._rng.uniform(0, self.longest_s))
        finally:
            self.running -= 1
        if self._rng.random() < self.failing:
            raise ModelError(ModelErrorCode.ANSWER, "cut short", usage=usage)
        return Completion(text=f"answer {len(self.billed)}", usage=usage, endpoint=self.name, model="metered-1")


def a_question(text: str = "write a kernel", **changes) -> CompletionRequest:
    """A question of 200 tokens' answer at most."""
    wanted = {"system": "You write kernels.", "seed": 1, "output_tokens_max": 200, "deadline_s": 600.0}
    wanted |= {"search_id": "search-1", **changes}
    return CompletionRequest(messages=(Message(role=Role.USER, text=text),), **wanted)
