"""Whose money an attempt is: what an endpoint asks before it sends anything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from shared.events import Usage
from synthesizer_svc.model import CompletionRequest
from synthesizer_svc.model.prices import Prices


class Bill(Protocol):
    """Told when an attempt is sent, and what it cost, once that is known. One that is never sent costs nothing; one
    that is cancelled afterwards has no known end.
    """

    def sent(self) -> None: ...
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

    def sent(self) -> None:
        """Nothing to write down."""

    def paid(self, usage: Usage) -> None:
        """Nothing to write down."""
