"""What a worker tells is exported, without what was only remembered, and also while the cache is gone."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest

from evaluator_svc.exported import Exported, Samples
from evaluator_svc.observer import Happening
from shared import metrics
from shared.cache import Depth
from shared.clock import SECOND_NS
from shared.errors import Unavailable
from shared.events import StageTimes
from tests.aio import on_loop
from tests.builders import a_pass


class Queues:
    """The depth of a queue, or none."""

    gone = False

    async def depth(self, queue: str) -> Depth:
        if self.gone:
            raise Unavailable("cache")
        return Depth(waiting=7, claimed=2)


@pytest.fixture
def address() -> Iterator[str]:
    with metrics.serving("127.0.0.1:0") as bound:
        yield bound


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def test_verdicts_stages_and_events_are_counted(address: str) -> None:
    observer = Exported("chip")
    measured = replace(a_pass(), stages=StageTimes(build_ns=2 * SECOND_NS))
    observer.claimed(SECOND_NS // 2)
    observer.answered(measured, 3 * SECOND_NS)
    observer.answered(replace(measured, memoised=True), 0)
    observer.happened(Happening.FENCED)
    text = scraped(address)
    assert 'kernelevolve_evaluations_total{chip="chip",memoised="false",status="PASSED"} 1.0' in text
    assert 'kernelevolve_evaluations_total{chip="chip",memoised="true",status="PASSED"} 1.0' in text
    assert 'kernelevolve_evaluation_stage_seconds_sum{chip="chip",stage="build"} 2.0' in text
    assert 'kernelevolve_evaluation_stage_seconds_count{chip="chip",stage="build"} 1.0' in text
    assert 'kernelevolve_evaluator_busy_seconds_total{chip="chip"} 3.0' in text
    assert 'kernelevolve_queue_wait_seconds_sum{chip="chip"} 0.5' in text
    assert 'kernelevolve_pool_events_total{chip="chip",event="fenced"} 1.0' in text
    assert 'kernelevolve_pool_events_total{chip="chip",event="stuck"} 0.0' in text


def test_every_event_of_a_pool_is_named_where_the_metric_is_explained() -> None:
    assert [what.value for what in Happening if what.value not in metrics.POOL.help_text] == []


@on_loop
async def test_a_sample_is_what_is_so_and_outlives_the_cache(address: str) -> None:
    queues = Queues()
    samples = Samples("chip", queues, slots=lambda: 4, lag=lambda: 9)
    for queues.gone in (False, True):
        await samples.sample()
        text = scraped(address)
        assert 'kernelevolve_queue_depth{chip="chip",state="waiting"} 7.0' in text
        assert 'kernelevolve_queue_depth{chip="chip",state="claimed"} 2.0' in text
        assert 'kernelevolve_evaluator_slots{chip="chip"} 4.0' in text
        assert 'chip="chip",group="evaluator.chip",topic="evaluation.requests.chip.v1"} 9.0' in text
