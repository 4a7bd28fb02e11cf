"""The shell of knowledge_svc: hears facts and others' skills, publishes what changes about its own, answers."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from knowledge_svc import announcements, documents
from knowledge_svc.documents import Document
from knowledge_svc.learn import Learner
from knowledge_svc.librarian import Librarian
from knowledge_svc.own_documents import OwnDocuments
from knowledge_svc.retrieve import rank_skills
from knowledge_svc.settings import Settings
from shared import envelopes, topics, tracing, wire
from shared.adapters import open_store
from shared.errors import Poison, UserError
from shared.events import Envelope, SkillDistilled, SkillRetired
from shared.knowledge import KnowledgeQuery, Passage
from shared.patience import patiently
from shared.ports import Ports
from shared.service import Service, Servicer, Subscribe
from shared.store import Store

GROUP = "knowledge"
SKILLS_GROUP = "knowledge.skills"
SERVICER = "protos.knowledge.v1.KnowledgeService"
SOURCE = "/knowledge"
_log = logging.getLogger(__name__)


class KnowledgeService:
    """Implements ``shared.knowledge.Knowledge`` and handles facts. Opens its store and documents when first needed.

    Any number of replicas work on one store: documents are looked at again when any of them changed one, and a skill
    is what all observations of all replicas amount to.
    """

    def __init__(self, ports: Ports, settings: Settings) -> None:
        self._ports, self._settings = ports, settings
        self._opening = asyncio.Lock()
        self._exits = AsyncExitStack()
        self._learner: Learner | None = None
        self._librarian: Librarian | None = None
        self._own: OwnDocuments | None = None
        self._mark = ""
        """Of the own documents that the librarian has."""

    async def retrieve(self, query: KnowledgeQuery, limit: int) -> tuple[Passage, ...]:
        """The most relevant passages, best first."""
        return (await self._up_to_date()).retrieve(query, limit)

    async def skills(self, query: KnowledgeQuery) -> tuple[SkillDistilled, ...]:
        """Skills about the query's operator class that are not retracted: measured in this very context first."""
        return await self.rank(query)

    async def rank(self, query: KnowledgeQuery, *, retracted: bool = False) -> tuple[SkillDistilled, ...]:
        """``skills``, and the ``retracted`` ones behind them when wanted."""
        await self.open()
        assert self._learner is not None
        return rank_skills(query, await self._learner.skills(), retracted=retracted)

    async def documents(self) -> tuple[Document, ...]:
        """Every document, in order of id."""
        return (await self._up_to_date()).documents

    async def own(self) -> OwnDocuments:
        """The documents that can be changed."""
        await self.open()
        assert self._own is not None
        return self._own

    async def shelved(self, document_id: str) -> Document | None:
        """The document of that id in the folders, which cannot be changed."""
        await self.open()
        assert self._librarian is not None
        return self._librarian.shelved(document_id)

    async def on_fact(self, envelope: Envelope) -> None:
        """Learn from one fact. Publishes before it remembers, so that a crash between publishes again, once known.

        What another replica learnt about the same skill meanwhile is found by looking again after remembering: the
        last one to look has seen the observations of all.
        """
        await self.open()
        assert self._learner is not None
        while changes := await self._learner.hear(envelope.event):
            for event in changes:
                wrapped = envelopes.envelope(
                    event,
                    cause_id=envelope.id,
                    source=SOURCE,
                    clock=self._ports.clock,
                    n=event.revision,
                    traceparent=tracing.onward(envelope),
                )
                await self._ports.bus.publish(topics.SKILLS, wire.encode(wrapped))
            for event in changes:
                if isinstance(event, SkillDistilled):
                    await self._learner.keep(event)

    async def on_announcement(self, envelope: Envelope) -> None:
        """Notice a skill announced on the bus: its own, which is known, or that of a service with another store.

        Raises:
            Poison: no event about a skill, or a claim that makes no sense.
        """
        await self.open()
        assert self._learner is not None
        match envelope.event:
            case SkillDistilled() as skill:
                announcements.check(skill)
                if await self._learner.notice(skill):
                    _log.info("skill %s was learnt elsewhere: %s", skill.skill_id, skill.statement)
            case SkillRetired():
                pass  # the skill was false where it was measured; here only what is measured here ends one
            case other:
                raise Poison(f"{type(other).__name__} on {topics.SKILLS}")

    async def open(self) -> None:
        """Open documents and the store of skills; does nothing the second time.

        Raises:
            UserError: a document is malformed.
            Unavailable: the store of skills cannot be reached.
        """
        async with self._opening:
            if self._learner is not None:
                return
            librarian = Librarian(self._settings.all_folders)
            try:
                memory = (await self._open_memory()).documents
            except BaseException:
                librarian.close()
                raise
            self._exits.callback(librarian.close)
            self._librarian, self._mark = librarian, ""
            self._own = OwnDocuments(memory, self._ports.clock)
            self._learner = Learner(self._ports.store.documents, memory)

    async def close(self) -> None:
        await self._exits.aclose()
        self._learner = self._librarian = self._own = None

    async def _up_to_date(self) -> Librarian:
        """The librarian, with the own documents as they are now."""
        await self.open()
        assert self._librarian is not None
        assert self._own is not None
        mark = await self._own.mark()
        if mark != self._mark:
            self._librarian.give(_readable(await self._own.texts()))
            self._mark = mark
        return self._librarian

    async def _open_memory(self) -> Store:
        if self._settings.in_own_store:
            return self._ports.store
        url = self._settings.skills_url
        scheme, _, place = url.partition(":")
        if scheme == "sqlite" and not _can_hold(Path(place)):
            _log.warning("skills are kept with this run alone: %s cannot be written", place)
            return self._ports.store
        return await self._exits.enter_async_context(open_store(url))


def _readable(texts: Mapping[str, str]) -> list[Document]:
    """The documents in ``texts``. One that this version cannot read, though another could, is left out."""
    found = []
    for document_id, text in texts.items():
        try:
            found.append(documents.of_id(document_id, text))
        except UserError as error:
            _log.warning("left out: %s", error)
    return found


def _can_hold(file: Path) -> bool:
    """Whether a database can be opened at ``file``: a search must not fail for want of a home directory."""
    existing = next(folder for folder in (file, *file.absolute().parents) if folder.exists())
    return os.access(existing, os.W_OK)


def build(ports: Ports, settings: Settings) -> tuple[Service, KnowledgeService]:
    """The service for ``runtime.run``, and the object that answers the synthesizer in the same process."""
    knowledge = KnowledgeService(ports, settings)
    learning = (
        Subscribe(topic=topics.FACTS, group=GROUP, handler=knowledge.on_fact),
        Subscribe(topic=topics.SKILLS, group=SKILLS_GROUP, handler=knowledge.on_announcement),
    )
    if not settings.learning:
        _log.info("KNOWLEDGE_LEARNING=false: skills stay as they are")
    service = Service(
        name="knowledge",
        subscriptions=learning if settings.learning else (),
        servicers=(Servicer(name=SERVICER, add=lambda server: _serve(knowledge, server)),),
        recover=lambda: patiently(knowledge.open, "open the store of skills"),
        close=knowledge.close,
    )
    return service, knowledge


def _serve(knowledge: KnowledgeService, server: Any) -> None:
    from knowledge_svc import grpc_api  # needs the extra `grpc`, which embedded programs may lack

    grpc_api.add(knowledge, server)
