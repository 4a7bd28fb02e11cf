"""What a whole search tells while it runs: numbers at /metrics, one trace from submit to result."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deploy.embedded import embedded
from evaluator_svc.exported import SAMPLE_EVERY_S
from search_svc import service
from shared import metrics, operators, topics
from shared.events import SearchFinished
from tests.builders import SEARCH_ID, a_search

CHIP = "simulated"
OPERATOR = Path(__file__).resolve().parents[3] / "examples/operators/softmax.py"
EVALUATIONS = 6


@dataclass
class Told:
    """``scraped`` after the search ended, and the spans that had ended by then."""

    finished: SearchFinished
    scraped: str
    spans: tuple[ReadableSpan, ...]

    def value(self, name: str, **labels: str) -> float:
        """The sum of the series of ``name`` that have these labels."""
        series = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", self.scraped, re.MULTILINE)
        wanted = {f'{label}="{value}"' for label, value in labels.items()}
        return sum(float(value) for given, value in series if wanted <= set(given.split(",")))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def story(self, span: ReadableSpan) -> list[str]:
        """Names from the root down to ``span``."""
        by_id = {each.context.span_id: each for each in self.spans}
        names = [span.name]
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            names.append(span.name)
        return names[::-1]


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch, metrics.serving("127.0.0.1:0") as address:
        patch.setattr(trace, "get_tracer_provider", lambda: provider)
        finished, scraped = asyncio.run(searched(address))
        yield Told(finished=finished, scraped=scraped, spans=exporter.get_finished_spans())
    provider.shutdown()


async def searched(address: str) -> tuple[SearchFinished, str]:
    environment = {"SKILLS_URL": "memory:", "SIMULATED_MEDIAN_S": "0.01", "SIMULATED_LONGEST_S": "0.05"}
    spec = operators.load(OPERATOR)
    async with embedded("memory:", CHIP, environment) as system:
        await system.ports.store.blobs.put(spec.source.encode())
        await service.submit(
            system.ports, a_search(operator=spec.ref, chip=CHIP, languages=("cpp",), evaluations=EVALUATIONS)
        )
        async for event in system.watch(SEARCH_ID):
            if isinstance(event, SearchFinished):
                return event, await sampled(address)
    raise AssertionError("the search never ended")


async def sampled(address: str) -> str:
    """What is scraped once the gauges are of a worker that has passed its own probe: the first sample may be older, and
    the next one later than the end of so short a search.
    """
    slots = re.compile(rf'^kernelevolve_evaluator_slots{{chip="{CHIP}"}} [1-9]', re.MULTILINE)
    async with asyncio.timeout(3 * SAMPLE_EVERY_S):
        while not slots.search(scraped := await asyncio.to_thread(scrape, address)):
            await asyncio.sleep(0.1)
    return scraped


def scrape(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def test_the_numbers_at_metrics_are_those_of_the_run(told: Told) -> None:
    evaluations = told.value("kernelevolve_evaluations_total", chip=CHIP)
    assert evaluations >= EVALUATIONS
    assert told.value("kernelevolve_evaluations_requested_total", chip=CHIP) >= evaluations
    assert told.value("kernelevolve_pool_events_total", chip=CHIP, event="taken_in") >= evaluations
    assert told.value("kernelevolve_pool_events_total", chip=CHIP, event="fenced") == 0
    assert told.value("kernelevolve_queue_wait_seconds_count", chip=CHIP) >= evaluations
    assert told.value("kernelevolve_candidates_total", outcome="produced") >= EVALUATIONS
    assert told.value("kernelevolve_searches_total", phase="started") == 1
    assert told.value("kernelevolve_searches_total", phase="finished") == 1
    assert told.value("kernelevolve_search_outcomes_total", outcome=told.finished.outcome) == 1
    assert told.value("kernelevolve_journal_append_seconds_count") > 2 * EVALUATIONS


def test_records_are_counted_by_topic_group_and_outcome(told: Told) -> None:
    asked = told.value("kernelevolve_records_total", topic=topics.SYNTHESIS_REQUESTS, outcome="handled")
    assert asked >= EVALUATIONS // 2
    assert told.value("kernelevolve_hop_delay_seconds_count", topic=topics.SYNTHESIS_REQUESTS) >= asked
    assert told.value("kernelevolve_records_total", topic=topics.FACTS, group="search", outcome="handled") > asked
    assert told.value("kernelevolve_records_total", outcome="poison") == 0
    assert 'kernelevolve_records_total{group="search",outcome="poison",topic="search.facts.v1"} 0.0' in told.scraped


def test_gauges_show_what_is_so(told: Told) -> None:
    assert {told.value("kernelevolve_dependency_up", dependency=name) for name in ("bus", "store", "cache")} == {1}
    assert told.value("kernelevolve_service_ready", service="search") == 1
    assert told.value("kernelevolve_evaluator_slots", chip=CHIP) >= 1
    assert f'kernelevolve_queue_depth{{chip="{CHIP}",state="waiting"}}' in told.scraped


def test_submit_synthesis_evaluation_and_result_are_one_trace(told: Told) -> None:
    (submit,) = told.named("submit")
    of_the_search = [span for span in told.spans if span.attributes.get("kernelevolve.search_id") == SEARCH_ID]
    assert {span.context.trace_id for span in of_the_search} == {submit.context.trace_id}
    stories = [told.story(span) for span in told.named("EvaluationCompleted")]
    assert ["submit", "ExpansionRequested", "EvaluationRequested", "EvaluationCompleted"] in stories


def test_every_span_of_a_candidate_names_it(told: Told) -> None:
    for name in ("CandidateProduced", "EvaluationRequested", "EvaluationCompleted"):
        assert told.named(name)
        assert all(span.attributes["kernelevolve.candidate_id"] for span in told.named(name))
