"""Choosing and opening the model that settings name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shared.cache import CacheBackend
from shared.clock import Clock
from shared.errors import UserError
from shared.events import ModelBudget
from shared.ports import Ports
from synthesizer_svc.model import Model
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.budgeted import BudgetedModel, Budgets, BudgetSettings
from synthesizer_svc.model.configuration import Authentication, EndpointSettings
from synthesizer_svc.model.day_book import DayBook
from synthesizer_svc.model.paying import Payer
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.retrying import RetrySettings
from synthesizer_svc.model.routed import Arm
from synthesizer_svc.model.scripted import load
from synthesizer_svc.model.secret import Secret
from synthesizer_svc.model.stack import stacked

if TYPE_CHECKING:
    from synthesizer_svc.model.endpoint import Endpoint
    from synthesizer_svc.model.http import HttpTransport

SCHEMES = "none:, scripted:PATH, http://…, https://…"


@dataclass(frozen=True, slots=True)
class Opened:
    """A model, and how to close it."""

    model: Model | None
    close: Callable[[], Awaitable[None]] | None = None


def open_model(
    url: str,
    endpoints: Sequence[EndpointSettings],
    *,
    ports: Ports,
    retry: RetrySettings,
    breaker: BreakerSettings,
    budget: BudgetSettings,
) -> Opened:
    """The model that ``url`` names, or what ``endpoints`` are together; None for "no model".

    Raises:
        UserError: what cannot be opened, and why.
    """
    script = None if endpoints else scripted(url)
    if script is None and not endpoints:
        return Opened(None)
    days = DayBook(budget.days_url) if budget.days_url and budget.of_a_day != ModelBudget() else None
    budgets = Budgets(ports.store.documents, ports.clock, budget, days=days)
    if script is not None:
        model = stacked({script.name: Arm(BudgetedModel(script, budgets, Prices()))}, ports)
        return Opened(model, days.close if days else None)
    opened = [
        open_endpoint(settings, cache=ports.cache, clock=ports.clock, retry=retry, breaker=breaker, payer=budgets)
        for settings in endpoints
    ]

    async def close() -> None:
        for endpoint in opened:
            await endpoint.close()
        if days:
            await days.close()

    arms = {endpoint.name: Arm(endpoint, endpoint.settings.weight) for endpoint in opened}
    return Opened(stacked(arms, ports), close)


def scripted(url: str) -> Model | None:
    """The model that a URL names which is no endpoint, or None for "no model".

    Raises:
        UserError: an unknown scheme, or an unreadable script.
    """
    scheme, colon, rest = url.partition(":")
    if url in ("", "none", "none:"):
        return None
    if scheme == "scripted":
        return load(Path(rest))
    what = f"unknown model scheme `{scheme}`" if colon else "is no URL"  # perhaps a key, which is not repeated
    raise UserError(what, where="MODEL_URL", hint=f"known: {SCHEMES}")


def open_endpoint(
    settings: EndpointSettings,
    *,
    cache: CacheBackend,
    clock: Clock,
    retry: RetrySettings,
    breaker: BreakerSettings,
    payer: Payer | None = None,
) -> Endpoint:
    """The innermost model: one endpoint over HTTP. Nothing is connected before the first question.

    Raises:
        UserError: httpx is not installed, or the address, the authorities or the environment's proxy cannot be used.
    """
    from synthesizer_svc.model.endpoint import Endpoint

    return Endpoint(
        settings,
        open_transport(settings),
        cache=cache.cache,
        leases=cache.leases,
        clock=clock,
        retry=retry,
        breaker=breaker,
        payer=payer,
    )


@asynccontextmanager
async def paid_by_the_day(budget: BudgetSettings, store_url: str, clock: Clock) -> AsyncIterator[Payer | None]:
    """Who pays for questions that no search asks: the day's budget, nobody where it has no limit.

    ``store_url`` is the searches' store. The day's account is opened with the first question, which raises
    ``UserError`` or ``Unavailable`` when it cannot be.
    """
    if budget.of_a_day == ModelBudget():
        yield None
        return
    days = DayBook(budget.days_url or store_url)
    try:
        yield Budgets(days, clock, budget)
    finally:
        await days.close()


def open_transport(settings: EndpointSettings) -> HttpTransport:
    """A way to the endpoint, with its key.

    Raises:
        UserError: as ``open_endpoint``.
    """
    try:
        from synthesizer_svc.model.http import HttpTransport
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "httpx":
            raise
        hint = "pip install 'kernelevolve[llm]'"
        raise UserError(
            "its driver httpx is not installed", where=f"model endpoint {settings.name}", hint=hint
        ) from error
    return HttpTransport(
        settings.url,
        credentials=_credentials(settings),
        key=settings.key,
        connect_s=settings.connect_s,
        silence_s=settings.silence_s,
        ca=settings.ca,
    )


def _credentials(settings: EndpointSettings) -> Mapping[str, Secret]:
    if settings.key is None:
        return {}
    if settings.authentication is Authentication.BEARER:
        return {"authorization": Secret(f"Bearer {settings.key.reveal()}")}
    return {settings.authentication.value: settings.key}
