"""One question to an endpoint behind a fault server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from shared.cache.memory import MemoryCacheBackend
from shared.clock import SystemClock
from synthesizer_svc.model import Completion, CompletionRequest, Message, ModelError, Role
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.capabilities import Capabilities, Protocol
from synthesizer_svc.model.configuration import Authentication, EndpointSettings
from synthesizer_svc.model.endpoint import Endpoint
from synthesizer_svc.model.opening import open_transport
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.retrying import RetrySettings
from tests.fakes.fault_server import FaultServer, Script, fault_server

QUESTION = CompletionRequest(
    system="You write kernels.",
    messages=(Message(role=Role.USER, text="Write one."),),
    seed=7,
    output_tokens_max=100,
    deadline_s=20.0,
)
RETRY = RetrySettings(attempts_max=3, pause_s=0.01, pause_max_s=0.02)
PATIENT = BreakerSettings(failures_max=100)
"""Never opens in a test that is about something else."""
PRICES = Prices(input=3_000_000, output=15_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of a question."""

    outcome: Completion | ModelError
    requests: int
    took_s: float

    @property
    def code(self) -> str:
        return self.outcome.code if isinstance(self.outcome, ModelError) else "answer"


def settings_for(server: FaultServer, **changes) -> EndpointSettings:
    settings = EndpointSettings(name="e", url=server.url, model="m", prices=PRICES, silence_s=5.0, connect_s=2.0)
    settings = replace(settings, **changes)
    if settings.capabilities.protocol is Protocol.ANTHROPIC:
        settings = replace(settings, authentication=Authentication.X_API_KEY)
    return settings


@asynccontextmanager
async def endpoint_at(
    settings: EndpointSettings, *, backend=None, clock=None, retry=RETRY, breaker=PATIENT, payer=None
) -> AsyncIterator[Endpoint]:
    clock = clock or SystemClock()
    backend = backend or MemoryCacheBackend(clock)
    endpoint = Endpoint(
        settings,
        open_transport(settings),
        cache=backend.cache,
        leases=backend.leases,
        clock=clock,
        retry=retry,
        breaker=breaker,
        payer=payer,
    )
    try:
        yield endpoint
    finally:
        await endpoint.close()


async def ask(
    *scripts: Script, protocol=Protocol.OPENAI, question=QUESTION, tls=None, capabilities=None, **changes
) -> Asked:
    """Ask an endpoint that answers by ``scripts``."""
    capabilities = capabilities or Capabilities(protocol=protocol)
    async with fault_server(*scripts, tls=tls) as server:
        settings = settings_for(server, capabilities=capabilities, **changes)
        async with endpoint_at(settings) as endpoint:
            began = time.monotonic()
            outcome = await outcome_of(endpoint, question)
            return Asked(outcome=outcome, requests=len(server.received), took_s=time.monotonic() - began)


async def outcome_of(endpoint: Endpoint, question: CompletionRequest = QUESTION) -> Completion | ModelError:
    try:
        return await endpoint.complete(question)
    except ModelError as error:
        return error
