"""A replica that asks questions: ``python -m tests.integration.model.asker STORE CACHE ENDPOINT TOKENS QUESTIONS``.

Eight at a time, through everything that stands before an endpoint; a line for each outcome.
"""

from __future__ import annotations

import asyncio
import sys

from shared.events import ModelBudget
from shared.ports import open_ports
from shared.settings import PortSettings
from synthesizer_svc.model import CompletionRequest, Message, ModelError, Role
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.budgeted import Budgets, BudgetSettings
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.opening import open_endpoint
from synthesizer_svc.model.recorded import RecordedModel
from synthesizer_svc.model.retrying import RetrySettings

PARALLEL = 8
LEASE_S = 2.0
OUTPUT_TOKENS_MAX = 50


def question(number: int, tokens: int) -> CompletionRequest:
    return CompletionRequest(
        system="You write kernels.",
        messages=(Message(role=Role.USER, text=f"question {number}"),),
        seed=number,
        output_tokens_max=OUTPUT_TOKENS_MAX,
        deadline_s=60.0,
        search_id="search-1",
        budget=ModelBudget(tokens=tokens),
    )


async def main(store_url: str, cache_url: str, endpoint_url: str, tokens: int, questions: int) -> None:
    async with open_ports(PortSettings(bus_url="memory:", store_url=store_url, cache_url=cache_url)) as ports:
        endpoint = open_endpoint(
            EndpointSettings(name="metered", url=endpoint_url, model="m", concurrency=100),
            cache=ports.cache,
            clock=ports.clock,
            retry=RetrySettings(attempts_max=1),
            breaker=BreakerSettings(failures_max=1000),
            payer=Budgets(ports.store.documents, ports.clock, BudgetSettings()),
        )
        model = RecordedModel(
            endpoint,
            ("metered",),
            documents=ports.store.documents,
            blobs=ports.store.blobs,
            leases=ports.cache.leases,
            clock=ports.clock,
            lease_s=LEASE_S,
        )
        waiting = iter(range(questions))

        async def expansion() -> None:
            for number in waiting:
                try:
                    answer = await model.complete(question(number, tokens))
                    print("answered", number, answer.usage.requests, flush=True)
                except ModelError as error:
                    print("failed", number, error.code, flush=True)

        async with asyncio.TaskGroup() as group:
            for _ in range(PARALLEL):
                group.create_task(expansion())
        await endpoint.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4], *map(int, sys.argv[4:])))
