"""Kernels of a model before a real compiler: what does not build goes back, and what it was told is told again."""

from __future__ import annotations

import asyncio

from evaluator_svc.evaluate import Evaluator
from evaluator_svc.toolchains.cpu import CpuToolchain
from evaluator_svc.trials import Trials
from shared.events import CandidateProduced
from shared.ports import open_ports
from shared.settings import PortSettings
from tests.fakes.talker import Talker
from tests.integration.evaluator.pipeline import SETTINGS, kernel_source
from tests.unit.synthesizer_svc.desk import desk

RIGHT, WRONG = kernel_source("right"), kernel_source("compile_error")


def expanded(model, directory):
    """The one candidate of an expansion, and its source."""

    async def scenario():
        async with open_ports(PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")) as ports:
            evaluator = Evaluator(ports, SETTINGS, CpuToolchain(directory=directory))
            try:
                async with desk(model=model, share=100, trials=Trials(evaluator)) as at:
                    (fact,) = await at.facts(await at.request(count=1))
                    return fact, (await at.ports.store.blobs.get(fact.kernel.source_hash)).decode()
            finally:
                await evaluator.close()

    return asyncio.run(scenario())


def test_a_kernel_that_does_not_compile_is_mended_before_anybody_measures_it(tmp_path):
    model = Talker([f"```cpp\n{WRONG}```", f"```cpp\n{RIGHT}```"])
    fact, source = expanded(model, tmp_path)
    assert isinstance(fact, CandidateProduced)
    assert source == RIGHT
    assert "COMPILE_ERROR" in model.complaints[0]
    assert "kernel.cpp:" in model.complaints[0]
    assert fact.usage.requests == 2


def test_after_a_crash_the_same_questions_are_asked_also_about_compile_errors(tmp_path):
    asked = []
    for place in ("one", "two"):
        model = Talker([f"```cpp\n{WRONG}```", f"```cpp\n{RIGHT}```"])
        expanded(model, tmp_path / place)
        asked.append([request.hash for request in model.asked])
    assert len(asked[0]) == 2
    assert asked[0] == asked[1]
