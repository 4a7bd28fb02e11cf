"""The shell of knowledge_svc: hears facts, publishes what they change about skills, answers questions."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack
from pathlib import Path

from knowledge_svc.learn import Learner
from knowledge_svc.librarian import Librarian
from knowledge_svc.retrieve import rank_skills
from knowledge_svc.settings import WITH_THE_RUN, Settings
from shared import envelopes, topics, wire
from shared.adapters import open_store
from shared.events import Envelope, SkillDistilled
from shared.knowledge import KnowledgeQuery, Passage
from shared.ports import Ports
from shared.runtime import Service, Subscribe
from shared.store import Store

GROUP = "knowledge"
SOURCE = "/knowledge"
_log = logging.getLogger(__name__)


class KnowledgeService:
    """Implements ``shared.knowledge.Knowledge`` and handles facts. Opens its store and documents when first needed."""

    def __init__(self, ports: Ports, settings: Settings) -> None:
        self._ports, self._settings = ports, settings
        self._opening = asyncio.Lock()
        self._exits = AsyncExitStack()
        self._learner: Learner | None = None
        self._librarian: Librarian | None = None

    async def retrieve(self, query: KnowledgeQuery, limit: int) -> tuple[Passage, ...]:
        """The most relevant passages, best first."""
        await self.open()
        assert self._librarian is not None
        return self._librarian.retrieve(query, limit)

    async def skills(self, query: KnowledgeQuery) -> tuple[SkillDistilled, ...]:
        """Skills about the query's operator class that are not retracted: measured in this very context first."""
        await self.open()
        assert self._learner is not None
        return rank_skills(query, await self._learner.skills())

    async def on_fact(self, envelope: Envelope) -> None:
        """Learn from one fact. Publishes before it remembers, so that a crash between publishes again, once known."""
        await self.open()
        assert self._learner is not None
        changes = await self._learner.hear(envelope.event)
        for event in changes:
            wrapped = envelopes.envelope(
                event,
                cause_id=envelope.id,
                source=SOURCE,
                clock=self._ports.clock,
                traceparent=envelope.traceparent,
            )
            await self._ports.bus.publish(topics.SKILLS, wire.encode(wrapped))
        for event in changes:
            if isinstance(event, SkillDistilled):
                await self._learner.keep(event)

    async def open(self) -> None:
        """Open documents and the store of skills; does nothing the second time.

        Raises:
            UserError: a document is malformed.
        """
        async with self._opening:
            if self._learner is not None:
                return
            self._librarian = Librarian(self._settings.all_folders)
            self._exits.callback(self._librarian.close)
            memory = await self._open_memory()
            self._learner = Learner(self._ports.store.documents, memory.documents)

    async def close(self) -> None:
        await self._exits.aclose()
        self._learner = self._librarian = None

    async def _open_memory(self) -> Store:
        url = self._settings.skills_url
        if url == WITH_THE_RUN:
            return self._ports.store
        scheme, _, place = url.partition(":")
        if scheme == "sqlite" and not _can_hold(Path(place)):
            _log.warning("skills are kept with this run alone: %s cannot be written", place)
            return self._ports.store
        return await self._exits.enter_async_context(open_store(url))


def _can_hold(file: Path) -> bool:
    """Whether a database can be opened at ``file``: a search must not fail for want of a home directory."""
    existing = next(folder for folder in (file, *file.absolute().parents) if folder.exists())
    return os.access(existing, os.W_OK)


def build(ports: Ports, settings: Settings) -> tuple[Service, KnowledgeService]:
    """The service for ``runtime.run``, and the object that answers the synthesizer in the same process."""
    knowledge = KnowledgeService(ports, settings)
    service = Service(
        name="knowledge",
        subscriptions=(Subscribe(topic=topics.FACTS, group=GROUP, handler=knowledge.on_fact),),
        recover=knowledge.open,
        close=knowledge.close,
    )
    return service, knowledge
