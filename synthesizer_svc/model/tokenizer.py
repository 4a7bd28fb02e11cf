"""Counting tokens with an endpoint's own tokenizer, where its server has a method for it.

llama.cpp and vLLM answer ``POST /tokenize`` beside ``/v1``. Vendors count whole requests only, for a round trip each,
and have contexts so large that a bound does (``prompts/tokens.py``).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shared.clock import SECOND_NS, Clock, SystemClock
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.exchange import Call, Head, Transport, TransportFault
from synthesizer_svc.model.opening import open_transport

LLAMA_CPP, VLLM = "llama.cpp", "vllm"
SERVERS = (LLAMA_CPP, VLLM)
"""Of ``EndpointSettings.server``: those whose tokenizer can be asked."""
DEADLINE_S = 30.0
"""For one text; the server may be busy with an answer."""
AT_ONCE = 4
LEFT_ALONE_S = 60
"""A server that still loads its model counts a minute later."""
ANSWER_BYTES = 4_096
"""Beside the numbers of the tokens: up to eight bytes each, and no more tokens than bytes."""

log = logging.getLogger(__name__)


class EndpointTokenizer:
    """Implements ``counting.Tokenizer`` over a transport to the server's root. After a failure it counts nothing for
    ``LEFT_ALONE_S``: bounds are as safe, and a prompt must not wait for a tokenizer that is away.
    """

    def __init__(self, settings: EndpointSettings, transport: Transport, clock: Clock | None = None) -> None:
        self._settings, self._transport, self._clock = settings, transport, clock or SystemClock()
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._again_ns = 0

    async def count(self, texts: Sequence[str]) -> Mapping[str, int] | None:
        if self._clock.monotonic_ns() < self._again_ns:
            return None
        try:
            counts = await asyncio.gather(*(self._count(text) for text in texts))
        except (TransportFault, ValueError) as error:
            self._again_ns = self._clock.monotonic_ns() + LEFT_ALONE_S * SECOND_NS
            log.warning("endpoint %s counts no tokens, so they are bounded: %s", self._settings.name, error)
            return None
        return dict(zip(texts, counts, strict=True))

    async def close(self) -> None:
        await self._transport.close()

    async def _count(self, text: str) -> int:
        """Raises ``TransportFault`` or ``ValueError``."""
        reader = _Whole()
        async with self._at_once:
            await self._transport.send(
                Call(path="/tokenize", body=json.dumps(self._question(text)).encode()),
                reader,
                deadline_s=DEADLINE_S,
                answer_bytes_max=ANSWER_BYTES + 16 * len(text.encode("utf-8", "replace")),
            )
        return reader.count()

    def _question(self, text: str) -> dict[str, Any]:
        if self._settings.server == VLLM:
            return {"model": self._settings.model, "prompt": text, "add_special_tokens": True}
        return {"content": text, "add_special": True}


def open_tokenizer(endpoints: Sequence[EndpointSettings]) -> EndpointTokenizer | None:
    """The tokenizer of the one endpoint there is; None where a prompt may go to several, or nobody counts.

    Raises:
        UserError: as ``opening.open_transport``.
    """
    if len(endpoints) != 1 or endpoints[0].server not in SERVERS:
        return None
    (settings,) = endpoints
    return EndpointTokenizer(settings, open_transport(replace(settings, url=root(settings.url))))


def root(url: str) -> str:
    """The server's root beneath which ``url`` has its version, e.g. ``http://host:8080`` of ``http://host:8080/v1``."""
    return url.rstrip("/").removesuffix("/v1")


class _Whole:
    """Takes in one JSON object."""

    def __init__(self) -> None:
        self._status, self._body = 0, bytearray()

    def begin(self, head: Head) -> None:
        self._status = head.status

    def feed(self, chunk: bytes) -> bool:
        self._body += chunk
        return True

    def count(self) -> int:
        """Raises ``ValueError`` when it is no answer to the question."""
        if self._status != 200:
            raise ValueError(f"status {self._status}")
        answer = json.loads(self._body)
        match answer:
            case {"tokens": list(tokens)}:
                return len(tokens)
        raise ValueError("no list of tokens in the answer")
