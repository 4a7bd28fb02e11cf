"""Knowledge from a service of its own, over gRPC.

One that is away is ``Unavailable`` and waited for: a kernel written without what is known would be another kernel, and
nobody would see why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from protos.knowledge.v1 import knowledge_service_pb2 as pb
from protos.knowledge.v1 import knowledge_service_pb2_grpc as rpc
from shared import proto_codec, settings
from shared.errors import Poison, UserError
from shared.events import SkillDistilled
from shared.knowledge import KnowledgeQuery, Passage
from shared.rpc.client import connect
from shared.rpc.errors import as_ours
from shared.rpc.settings import ClientSettings

PAGE = 1000
"""Skills asked for at a time."""

log = logging.getLogger(__name__)


class RemoteKnowledge:
    """Implements ``shared.knowledge.Knowledge``. Connects when first asked; ``close`` ends the connection.

    Every question raises ``Unavailable`` while the service does not answer, and ``UserError`` when it knows no such
    caller.
    """

    def __init__(self, client: ClientSettings) -> None:
        self._settings = client
        self._exits = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._stub: Any = None

    async def retrieve(self, query: KnowledgeQuery, limit: int) -> tuple[Passage, ...]:
        """The most relevant passages, best first."""
        stub = await self._connected()
        with as_ours(self._settings.server):
            answer = await stub.Retrieve(pb.RetrieveRequest(query=_message(query), limit=limit))
        return tuple(
            Passage(document_id=p.document_id, title=p.title, text=p.text, score=p.score) for p in answer.passages
        )

    async def skills(self, query: KnowledgeQuery) -> tuple[SkillDistilled, ...]:
        """Skills that apply to the query's context and are not retracted, strongest claim first."""
        stub = await self._connected()
        found: dict[str, SkillDistilled] = {}
        request = pb.ListSkillsRequest(query=_message(query), page_size=PAGE)
        while True:
            with as_ours(self._settings.server):
                answer = await stub.ListSkills(request)
            for skill in _readable(answer.skills):
                found.setdefault(skill.skill_id, skill)
            if not answer.next_page_token:
                return tuple(found.values())
            request.page_token = answer.next_page_token

    async def close(self) -> None:
        """End the connection."""
        await self._exits.aclose()
        self._stub = None

    async def _connected(self) -> Any:
        async with self._opening:
            if self._stub is None:
                channel = await self._exits.enter_async_context(connect(self._settings))
                self._stub = rpc.KnowledgeServiceStub(channel)  # type: ignore[no-untyped-call]
        return self._stub


def client_settings(url: str, environment: Mapping[str, str], variable: str = "KNOWLEDGE_URL") -> ClientSettings:
    """How to call the service at ``url`` (``grpc://host:port``), as ``variable`` names it: token and TLS are those of
    every client here.

    Raises:
        UserError: ``url`` or a variable does not parse.
    """
    where = variable if "@" in url else f"{variable}={url}"  # a user's password is not shown
    parts = urlsplit(url)
    if parts.scheme != "grpc" or not parts.netloc or parts.path.strip("/"):
        raise UserError("is not the URL of a service", where=where, hint="write grpc://host:port")
    try:
        port = parts.port
    except ValueError as error:
        raise UserError(f"has no usable port: {error}", where=where) from error
    if port is None or "@" in parts.netloc:
        raise UserError("names no port, or a user", where=where, hint="write grpc://host:port")
    return replace(settings.from_env(ClientSettings, environment, "KERNELEVOLVE_"), server=parts.netloc)


def _message(query: KnowledgeQuery) -> pb.Query:
    return pb.Query(
        chip=query.chip,
        language=query.language,
        operator_class=query.operator_class,
        bound=proto_codec.number(query.bound),  # type: ignore[arg-type]
        error=query.error,
        words=query.words,
    )


def _readable(messages: Iterable[Any]) -> list[SkillDistilled]:
    """Skills of a newer service that this version cannot read are left out."""
    found = []
    for message in messages:
        try:
            found.append(proto_codec.from_message(SkillDistilled, message))
        except Poison as error:
            log.warning("a skill was left out: %s", error)
    return found
