"""How long calls last: a deadline for each unary one, and on drain streams that can be resumed move elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc

from shared.errors import Unavailable
from shared.rpc import errors
from shared.rpc.handlers import Around, Context, Interceptor
from shared.rpc.methods import of


class Limits:
    """Deadlines of the calls in progress on one server. ``longest_s``: of any unary call; 0: as ``methods`` says."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._resumable: set[asyncio.Timeout] = set()
        self._leaving = False

    def interceptor(self) -> Interceptor:
        return Interceptor(self._choose)

    def leave(self) -> None:
        """Cut every stream that its client resumes: it finds another server sooner than this one could end it."""
        self._leaving = True
        now = asyncio.get_running_loop().time()
        for limit in self._resumable:
            limit.reschedule(now)

    def _choose(self, path: str) -> Around | None:
        method = of(path)
        if method is None:
            return None
        if method.resumable:
            return self._until_leaving
        if not method.deadline_s:
            return None
        allowed_s = self._longest_s or method.deadline_s

        @asynccontextmanager
        async def within(context: Context) -> AsyncIterator[None]:
            limit = asyncio.timeout(allowed_s)  # a client's own, shorter deadline is kept by gRPC
            try:
                async with limit:
                    yield
            except TimeoutError:
                if not limit.expired():
                    raise
                text = f"the server gives this call {allowed_s:g} s"
                late = errors.status(grpc.StatusCode.DEADLINE_EXCEEDED, text, "SERVER_DEADLINE")
                await errors.abort(context, late)

        return within

    @asynccontextmanager
    async def _until_leaving(self, _context: Context) -> AsyncIterator[None]:
        limit = asyncio.timeout(0 if self._leaving else None)
        self._resumable.add(limit)
        try:
            async with limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise Unavailable("the server is stopping: call again from the last answer") from error
        finally:
            self._resumable.discard(limit)
