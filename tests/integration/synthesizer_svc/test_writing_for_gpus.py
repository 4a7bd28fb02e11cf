"""An expansion for a GPU: the chip's sheet decides what is written, and for what."""

import ast
import asyncio
import json

from shared import envelopes, topics, wire
from shared.events import CandidateProduced, ExpansionFailed, ExpansionRequested, Memory, OperatorRef
from shared.ports import open_ports
from shared.runtime import running
from shared.settings import PortSettings
from synthesizer_svc import service
from synthesizer_svc.no_knowledge import NoKnowledge
from synthesizer_svc.settings import Settings
from tests.integration.schedule import table

SOURCE = table.source(("F.softmax(x, -1)", ["torch.randn(13, 337).half()"]))
COUNT = 3


async def answers(languages):
    async with open_ports(PortSettings(store_url="memory:")) as ports:
        synthesizer = service.build(ports, Settings(), NoKnowledge())
        async with running((synthesizer,), ports), ports.bus.subscribe(topics.FACTS, "test") as facts:
            request = ExpansionRequested(
                search_id="s",
                expansion_id="e",
                operator=OperatorRef(name="op", source_hash=await ports.store.blobs.put(SOURCE.encode())),
                chip="nvidia-sm_90",
                languages=languages,
                seed=1,
                count=COUNT,
                memory=Memory.PARENT,
            )
            cause = envelopes.envelope(request, cause_id="s", source="/test", clock=ports.clock)
            await ports.bus.publish(topics.SYNTHESIS_REQUESTS, wire.encode(cause))
            found = []
            while len(found) < COUNT and not any(isinstance(f, ExpansionFailed) for f in found):
                delivery = await facts.poll(0.2)
                if delivery is not None:
                    found.append(wire.decode(delivery.record).event)
            blobs = ports.store.blobs
            return [
                (f, await blobs.get(f.kernel.source_hash), await blobs.get(f.kernel.schedule_hash))
                if isinstance(f, CandidateProduced)
                else (f, b"", b"")
                for f in found
            ]


def test_an_expansion_for_a_gpu_is_answered_with_distinct_triton_modules():
    answered = asyncio.run(answers(("triton", "python")))
    assert len({fact.kernel.kernel_id for fact, _, _ in answered}) == COUNT
    for fact, source, schedule in answered:
        assert (fact.kernel.language, fact.kernel.entry, fact.kernel.flags) == ("triton", "ModelNew", ())
        names = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        assert names[-1] == "ModelNew"
        assert "g0.warps" in json.loads(schedule)


def test_a_gpu_is_refused_in_a_language_for_processors():
    ((fact, _, _),) = asyncio.run(answers(("cpp",)))
    assert fact.code == "unsupported_operator"
    assert "is not written for sm_90" in fact.detail
