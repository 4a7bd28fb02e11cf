"""The search service as one of several processes: what ``python -m search_svc`` runs.

Beside the facts it hears what pools announce, sweeps up after accidents and answers gRPC. Nothing is recovered on
start: facts that a predecessor had not committed come again, and the sweeper finds everything else.
"""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass

from search_svc import grpc_api, operations_api
from search_svc.index import Index
from search_svc.news import News
from search_svc.owner import Held, Owner, SearchBroken
from search_svc.pools import Pools
from search_svc.service import GROUP, NAME
from search_svc.settings import Settings
from search_svc.submissions import Submissions
from search_svc.sweeper import Sweeper
from shared import endings, topics
from shared.errors import Stranded
from shared.events import Envelope
from shared.ports import Ports
from shared.service import Service, Subscribe

CAPACITY_GROUP = "search.capacity"


@dataclass(frozen=True, kw_only=True)
class Replica:
    """The parts of one process."""

    owner: Owner
    submissions: Submissions
    index: Index
    pools: Pools
    sweeper: Sweeper
    api: grpc_api.SearchServicer

    async def on_fact(self, envelope: Envelope) -> None:
        """One fact of one search. Raises ``Stranded`` when its search is broken: the others go on."""
        try:
            await self.owner.on_fact(envelope)
        except SearchBroken as error:
            raise Stranded(str(error)) from error


def assemble(ports: Ports, settings: Settings) -> Replica:
    """The parts over open ports."""
    index = Index(ports.store, ports.clock)
    submissions = Submissions(ports, index)
    pools = Pools(ports.store.documents, ports.clock, settings.pool_silence_s)
    news = News()

    async def changed(held: Held) -> None:
        news.tell(held.search_id)
        await index.note(held)
        if held.tree is not None and held.tree.finished:
            await submissions.ended(held.search_id)
            await endings.note(ports.cache.cache, held.search_id)

    owner = Owner(ports, settings, changed)
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    return Replica(
        owner=owner,
        submissions=submissions,
        index=index,
        pools=pools,
        sweeper=Sweeper(ports, owner, submissions, settings, name=name),
        api=grpc_api.SearchServicer(ports, submissions, index, pools, news, settings),
    )


def build(ports: Ports, settings: Settings, parts: Replica | None = None) -> Service:
    """The service over open ports; ``parts`` stand in for those it would make."""
    replica = parts or assemble(ports, settings)
    facts = Subscribe(
        topic=topics.FACTS, group=GROUP, handler=replica.on_fact, members=settings.members, in_flight=settings.in_flight
    )
    capacity = Subscribe(topic=topics.CAPACITY, group=CAPACITY_GROUP, handler=replica.pools.on_announcement)
    return Service(
        name=NAME,
        subscriptions=(facts, capacity),
        background=(replica.sweeper.run,),
        servicers=(replica.api.servicer(), operations_api.OperationsServicer(ports).servicer()),
    )
