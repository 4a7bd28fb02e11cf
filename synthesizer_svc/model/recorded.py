"""Every question and its answer on record: an equal question is answered from there, and costs nothing.

What is on record is found by the question's hash and the endpoints that could have been asked. Of those who ask the
same thing at the same time one asks; the others wait for the answer, or for the lease to run out that says somebody
is asking. Before a question is sent an *intent* is written. An intent without an answer is a call that was lost: it
may have been billed, which the ledger knows, and the question is asked again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from shared import ids
from shared.cache import Leases
from shared.clock import SECOND_NS, Clock
from shared.errors import Unavailable
from shared.events import Usage
from shared.json_codec import to_plain
from shared.patience import patiently
from shared.store import Blobs, Documents
from synthesizer_svc.model import Completion, CompletionRequest, Model, ModelError, ModelErrorCode

ANSWERS, INTENTS = "model.answers", "model.intents"
"""Collections: name of the question -> its answer; ``<name>/<attempt>`` -> who sends it, and when."""
LEASE_S = 30.0
"""Somebody who asks and is not heard of for this long is taken for dead."""
LOOK_AGAIN_S = 0.2
LOOK_AGAIN_MAX_S = 2.0

log = logging.getLogger(__name__)


class RecordedModel:
    """Answers from the record, and asks ``inner`` for what is not there. ``endpoints`` name who could be asked."""

    def __init__(
        self,
        inner: Model,
        endpoints: Sequence[str],
        *,
        documents: Documents,
        blobs: Blobs,
        leases: Leases,
        clock: Clock,
        lease_s: float = LEASE_S,
    ) -> None:
        self._inner, self._endpoints = inner, sorted(endpoints)
        self._documents, self._blobs, self._leases, self._clock = documents, blobs, leases, clock
        self._lease_s = lease_s

    @property
    def name(self) -> str:
        return self._inner.name

    async def complete(self, request: CompletionRequest) -> Completion:
        name = ids.derive(request.hash, *self._endpoints)
        until_ns = self._clock.monotonic_ns() + round(request.deadline_s * SECOND_NS)
        pause_s = LOOK_AGAIN_S
        while True:
            found = await self._recall(name)
            if found is not None:
                return found
            left_s = (until_ns - self._clock.monotonic_ns()) / SECOND_NS
            if left_s <= 0:
                raise ModelError(ModelErrorCode.DEADLINE, "somebody else is asking the same, and has no answer yet")
            async with self._alone(name) as mine:
                if mine:
                    return await self._recall(name) or await self._ask(name, replace(request, deadline_s=left_s))
            await asyncio.sleep(min(pause_s, left_s))
            pause_s = min(LOOK_AGAIN_MAX_S, pause_s * 2)

    async def _ask(self, name: str, request: CompletionRequest) -> Completion:
        attempt = await self._intend(name, request)
        if attempt:
            log.warning("model question %s: asked before, and no answer came back: asked again", name)
        completion = await self._inner.complete(request)
        # It was paid for: a store that is away for a while is waited for, as long as the caller waits.
        standing = await patiently(lambda: self._keep(name, request, completion), "keep an answer of a model")
        if standing is None:
            return completion
        # Somebody had taken us for dead: their answer stands, and what ours cost was spent all the same.
        recalled = await self._completion(standing)
        return Completion(
            text=recalled.text,
            truncated=recalled.truncated,
            refused=recalled.refused,
            usage=completion.usage,
            endpoint=recalled.endpoint,
            model=recalled.model,
        )

    async def _keep(self, name: str, request: CompletionRequest, completion: Completion) -> dict[str, object] | None:
        """Put an answer on record; the one that was there before, if another was."""
        answer = {
            "text": await self._blobs.put(completion.text.encode("utf-8", "surrogatepass")),
            "truncated": completion.truncated,
            "refused": completion.refused,
            "endpoint": completion.endpoint,
            "model": completion.model,
            "usage": to_plain(completion.usage),
            "search_id": request.search_id,
            "request": request.hash,
        }
        standing = await self._documents.create(ANSWERS, name, answer)
        return None if standing == answer else standing

    async def _intend(self, name: str, request: CompletionRequest) -> int:
        """Write that the question is sent; how many times it was sent before, without an answer."""
        attempt = 0
        intent = {
            "request": request.hash,
            "prompt": await self._blobs.put(request.text.encode("utf-8", "surrogatepass")),
            "search_id": request.search_id,
            "endpoints": self._endpoints,
            "by": secrets.token_hex(8),
            "at_ns": self._clock.now_ns(),
        }
        while (await self._documents.create(INTENTS, f"{name}/{attempt:04d}", intent)) not in (None, intent):
            attempt += 1
        return attempt

    async def _recall(self, name: str) -> Completion | None:
        stored = await self._documents.get(ANSWERS, name)
        return None if stored is None else await self._completion(stored)

    async def _completion(self, stored: Mapping[str, Any]) -> Completion:
        """An answer on record: it was paid for when it was given."""
        return Completion(
            text=(await self._blobs.get(stored["text"])).decode("utf-8", "surrogatepass"),
            truncated=stored["truncated"],
            refused=stored["refused"],
            usage=Usage(),
            endpoint=stored["endpoint"],
            model=stored["model"],
        )

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[bool]:
        """Whether the caller is the one who asks; while they are, others are told so. Without the cache's server
        everybody is: two may then ask the same, which budgets bound.
        """
        lease, owner = f"model.question.{name}", secrets.token_hex(8)
        try:
            token = await self._leases.acquire(lease, owner, self._lease_s)
        except Unavailable:
            yield True
            return
        if token is None:
            yield False
            return
        renewing = asyncio.create_task(self._renew(lease, token))
        try:
            yield True
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
            with suppress(Unavailable):
                await self._leases.release(lease, token)

    async def _renew(self, lease: str, token: int) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            with suppress(Unavailable):
                await self._leases.renew(lease, token, self._lease_s)
