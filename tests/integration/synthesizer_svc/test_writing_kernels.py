"""The synthesizer on the real path: request on the bus, capture, plan, emission, facts on the bus, a compiler."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from shared import abi, envelopes, topics, wire
from shared.events import CandidateProduced, ExpansionFailed, ExpansionRequested, Memory, OperatorRef
from shared.ports import open_ports
from shared.runtime import running
from shared.settings import PortSettings
from synthesizer_svc import service
from synthesizer_svc.asking.settings import AskingSettings
from synthesizer_svc.no_knowledge import NoKnowledge
from synthesizer_svc.settings import ModelSettings, Settings

SOFTMAX = (Path(__file__).parents[2] / "operators" / "row_softmax.py").read_text(encoding="utf-8")
HANDWRITTEN = (Path(__file__).parents[2] / "kernels" / "right.cpp").read_text(encoding="utf-8")
COMPLEX = SOFTMAX.replace("torch.softmax(x, dim=-1)", "torch.fft.fft(x).real")


async def answers(source: str, settings: Settings, count: int):
    """Facts that answer one draft request for ``source``, and the sources of the kernels among them."""
    async with open_ports(PortSettings(store_url="memory:")) as ports:
        synthesizer = service.build(ports, settings, NoKnowledge())
        async with running((synthesizer,), ports) as handle, ports.bus.subscribe(topics.FACTS, "test") as facts:
            request = ExpansionRequested(
                search_id="s",
                expansion_id="e",
                operator=OperatorRef(name="op", source_hash=await ports.store.blobs.put(source.encode())),
                chip="cpu-x86_64",
                languages=("cpp",),
                seed=1,
                count=count,
                memory=Memory.PARENT,
            )
            cause = envelopes.envelope(request, cause_id="s", source="/test", clock=ports.clock)
            await ports.bus.publish(topics.SYNTHESIS_REQUESTS, wire.encode(cause))
            found = []
            while len(found) < count and not any(isinstance(f, ExpansionFailed) for f in found):
                delivery = await facts.poll(0.2)
                if handle.failed.done():
                    await handle.failed
                if delivery is not None:
                    found.append(wire.decode(delivery.record).event)
            produced = [fact for fact in found if isinstance(fact, CandidateProduced)]
            return found, [(await ports.store.blobs.get(f.kernel.source_hash)).decode() for f in produced]


def compiles(source: str, flags: tuple[str, ...], directory: Path) -> None:
    (directory / abi.HEADER_NAME).write_text(abi.header())
    command = ["g++", "-std=c++17", "-fsyntax-only", *flags, "-I.", "-x", "c++", "-"]
    done = subprocess.run(command, input=source, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def shared_expansion(tmp_path_factory):
    """Four candidates of one operator, two of them asked of a model; the operator is captured once for all tests."""
    script = tmp_path_factory.mktemp("model") / "script.json"
    good = f"One pass per row.\n\n```cpp\n{HANDWRITTEN}```\n"
    script.write_text(json.dumps({"answers": [{"text": good}, {"text": "Unroll it."}]}))
    settings = Settings(model=ModelSettings(url=f"scripted:{script}"), asking=AskingSettings(asking="whole"))
    return asyncio.run(answers(SOFTMAX, settings, 4))


def test_a_real_operator_gets_distinct_kernels_that_compile(shared_expansion, tmp_path):
    facts, sources = shared_expansion
    produced = [fact for fact in facts if isinstance(fact, CandidateProduced)]
    assert len({fact.kernel.kernel_id for fact in produced}) == 3
    for fact, source in zip(produced, sources, strict=True):
        compiles(source, fact.kernel.flags, tmp_path)


def test_a_scripted_model_and_the_schedules_share_an_expansion(shared_expansion):
    (first, second, written, rejected), sources = shared_expansion
    assert (written.move.name, written.move.rationale) == ("rewrite", "One pass per row.")
    assert sources[2] == HANDWRITTEN
    assert rejected.code == "no_block"
    assert [first.move.name, second.move.name] == ["draft:default", "draft:random"]
    assert all(fact.kernel.schedule_hash for fact in (first, second))


def test_an_operator_outside_the_plan_is_refused_by_the_name_of_its_node():
    (fact,), _ = asyncio.run(answers(COMPLEX, Settings(), 2))
    assert isinstance(fact, ExpansionFailed)
    assert fact.code == "unsupported_operator"
    assert "fft" in fact.detail
