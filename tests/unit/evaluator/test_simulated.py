"""The simulated chip: the same kernel gets the same verdict, and every result says that nothing was measured."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from evaluator_svc import settings
from evaluator_svc.evaluators import evaluator_of
from evaluator_svc.settings import Settings, SimulatedLimits
from evaluator_svc.simulated import STALLS, SimulatedEvaluator
from shared import chips
from shared.errors import UserError
from shared.events import EvaluationRequested, Purpose, StageTimes, Status
from shared.ports import open_ports
from shared.settings import PortSettings
from tests.aio import on_loop
from tests.unit.evaluator.pooling import CHIP, evidence, request

AT_ONCE = Settings(chip=CHIP, simulated=SimulatedLimits(median_s=0.0))


@on_loop
async def test_equal_kernels_get_equal_verdicts_that_say_they_are_simulated() -> None:
    async with open_ports(PortSettings(store_url="memory:")) as ports:
        found = []
        for n in range(40):
            asked = await stored(ports.store.blobs, f"kernel {n}")
            again = replace(asked, evaluation_id="again", search_id="another")
            first, second = [await evaluator_of(ports, AT_ONCE).evaluate(each) for each in (asked, again)]
            assert replace(first, stages=StageTimes()) == replace(second, stages=StageTimes())
            assert "nothing was measured" in {e.name: e.value for e in first.environment}["simulated"]
            found.append(first)
    assert {each.status for each in found} > {Status.PASSED}
    assert len({each.speedup() for each in found if each.status is Status.PASSED}) > 20


async def stored(blobs, text: str) -> EvaluationRequested:  # type: ignore[no-untyped-def]
    asked = request("a")
    return replace(asked, kernel=replace(asked.kernel, source_hash=await blobs.put(text.encode())))


def test_durations_have_a_heavy_tail_and_a_limit() -> None:
    limits = SimulatedLimits(median_s=0.1, sigma=1.0, longest_s=2.0)
    evaluator = SimulatedEvaluator(None, Settings(chip=CHIP, simulated=limits))  # type: ignore[arg-type]
    seconds = sorted(evaluator.seconds(request(f"a{n}")) for n in range(1000))
    assert 0.08 < seconds[500] < 0.12
    assert seconds[990] > 5 * seconds[500]
    assert seconds[-1] <= 2.0
    asked = request("a0")
    assert evaluator.seconds(asked) != evaluator.seconds(replace(asked, purpose=Purpose.FINAL))


@on_loop
async def test_a_kernel_marked_to_stall_ends_when_told_to() -> None:
    async with open_ports(PortSettings(store_url="memory:")) as ports:
        asked = await stored(ports.store.blobs, f"// {STALLS}")
        task = asyncio.create_task(evaluator_of(ports, AT_ONCE).evaluate(asked))
        await asyncio.sleep(0.01)
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()


@on_loop
async def test_a_missing_text_is_infrastructure() -> None:
    async with open_ports(PortSettings(store_url="memory:")) as ports:
        found = await evaluator_of(ports, AT_ONCE).evaluate(request("a"))
    assert found.status is Status.INFRASTRUCTURE
    assert "no blob" in evidence(found)["reason"]


def test_the_sheet_says_that_it_measures_nothing() -> None:
    assert "measures nothing" in chips.load(CHIP).title


def test_its_settings_are_checked() -> None:
    assert settings.from_env({"SIMULATED_MEDIAN_S": "0.5"}).simulated.median_s == 0.5
    with pytest.raises(UserError, match="SIMULATED_"):
        settings.from_env({"SIMULATED_FAILING": "2"})
    with pytest.raises(UserError, match="EVALUATOR_"):
        settings.from_env({"EVALUATOR_SLOTS": "0"})
