"""Whose money an attempt is: what an endpoint asks before it sends anything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from shared.events import Usage
from synthesizer_svc.model import CompletionRequest
from synthesizer_svc.model.prices import Prices


class Bill(Protocol):
    """Told what an attempt cost, once that is known; an attempt that is cancelled has no known end."""

    def paid(self, usage: Usage) -> None: ...


class Payer(Protocol):
    """Whose money it is: ``budgeted.Budgets``, or nobody's."""

    def paying(
        self, request: CompletionRequest, *, prices: Prices, endpoint: str, deadline_s: float
    ) -> AbstractAsyncContextManager[Bill]:
        """Around one attempt at ``request``.

        Raises:
            ModelError: it may not be sent.
        """
        ...


class Nobody:
    """Keeps no accounts."""

    @asynccontextmanager
    async def paying(
        self,
        request: CompletionRequest,  # noqa: ARG002
        *,
        prices: Prices,  # noqa: ARG002
        endpoint: str,  # noqa: ARG002
        deadline_s: float,  # noqa: ARG002
    ) -> AsyncIterator[Nobody]:
        yield self

    def paid(self, usage: Usage) -> None:
        """Nothing to write down."""
