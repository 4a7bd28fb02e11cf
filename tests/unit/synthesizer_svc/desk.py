"""A synthesizer on memory ports: what a search would send it, and what it sends back."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

from shared import envelopes, ids, topics, wire
from shared.clock import ManualClock
from shared.events import Event, ExpansionRequested, KernelRef, Memory, OperatorRef
from shared.knowledge import Passage
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from synthesizer_svc import service
from synthesizer_svc.asking.settings import AskingSettings
from synthesizer_svc.model.budgeted import BudgetSettings
from synthesizer_svc.no_knowledge import NoKnowledge
from synthesizer_svc.schedule.schedule import Schedule
from synthesizer_svc.settings import Limits, ModelSettings, Settings
from tests.unit.synthesizer_svc.spaces import OPERATOR, TextLowering, a_skill

KERNEL = 'extern "C" int ke_launch(const void *in, int n, void *out, int m, void *s) { return 0; }'


class OneDocument:
    """Knowledge of one document and one skill; remembers what it was asked."""

    def __init__(self) -> None:
        self.queries = []

    async def retrieve(self, query, limit):
        self.queries.append((query, limit))
        return (Passage(document_id="guidance/streams", title="Streams", text="Write once.", score=1.0),)

    async def skills(self, query):
        return (a_skill("pointwise:stores=streaming", 0.5),)


class Desk:
    """A synthesizer on memory ports, with what a search would send it and what it sent back."""

    def __init__(
        self, ports: Ports, settings: Settings, lowering: TextLowering, knowledge, *, model=None, trials=None
    ) -> None:
        self.ports, self.lowering = ports, lowering
        self.service = service.build(
            ports, settings, knowledge, lowerings={"cpp": lowering}, model=model, trials=trials
        )

    async def request(self, **changes) -> ExpansionRequested:
        operator = OperatorRef(name="twice", source_hash=await self.ports.store.blobs.put(OPERATOR.encode()))
        given = {
            "search_id": "s1",
            "expansion_id": "e1",
            "operator": operator,
            "chip": "cpu-x86_64",
            "languages": ("cpp",),
            "seed": 7,
            "count": 2,
            "memory": Memory.PARENT,
        }
        return ExpansionRequested(**(given | changes))

    async def kernel(self, schedule: Schedule | None = None, source: str = "// parent\n") -> KernelRef:
        blobs = self.ports.store.blobs
        source_hash = await blobs.put(source.encode())
        return KernelRef(
            kernel_id=ids.derive("cpp", source_hash, "-O3", "ke_launch"),
            language="cpp",
            source_hash=source_hash,
            flags=("-O3",),
            schedule_hash=await blobs.put(schedule.to_json()) if schedule else "",
        )

    async def deliver(self, event: Event) -> list[bytes]:
        """Handle ``event`` and return the records that came out, as bytes."""
        (subscribe,) = self.service.subscriptions
        cause = envelopes.envelope(event, cause_id="cause", source="/test", clock=self.ports.clock)
        async with self.ports.bus.subscribe(topics.FACTS, "reader") as facts:
            await _drain(facts)  # those of earlier deliveries: nothing is committed
            await subscribe.handler(cause)
            return await _drain(facts)

    async def facts(self, event: Event) -> list[Event]:
        return [wire.decode(record).event for record in await self.deliver(event)]


async def _drain(subscription):
    records = []
    while (delivery := await subscription.poll(0)) is not None:
        records.append(delivery.record)
    return records


@asynccontextmanager
async def desk(
    *,
    model_url="",
    share=50,
    lowering=None,
    knowledge=None,
    model=None,
    trials=None,
    asking=None,
    budget=None,
    **limits,
):
    settings = Settings(
        model=ModelSettings(url=model_url, share_percent=share),
        asking=AskingSettings(**({"asking": "whole"} | (asking or {}))),
        budget=budget or BudgetSettings(),
        limits=Limits(**limits),
    )
    async with open_ports(PortSettings(store_url="memory:"), ManualClock(1_000)) as ports:
        yield Desk(ports, settings, lowering or TextLowering(), knowledge or NoKnowledge(), model=model, trials=trials)


def script(tmp_path, *answers):
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"answers": list(answers)}))
    return f"scripted:{path}"
