"""Trace context crosses the bus as a link, and costs nothing where OpenTelemetry is absent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared import tracing
from tests.unit.shared.builders import an_envelope


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def named(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    return next(span for span in spans.get_finished_spans() if span.name == name)


def test_handling_links_to_the_span_that_published(spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("test").start_as_current_span("publish"):
        envelope = replace(an_envelope(), traceparent=tracing.current_traceparent())
    with tracing.handling(envelope, "handle"):
        assert tracing.current_traceparent() not in ("", envelope.traceparent)
    (link,) = named(spans, "handle").links
    assert link.context.span_id == named(spans, "publish").context.span_id
    assert named(spans, "handle").parent is None
    assert named(spans, "handle").attributes["messaging.message.id"] == envelope.id


@pytest.mark.parametrize("traceparent", ["", "garbage"])
def test_an_envelope_without_a_usable_context_has_no_link(spans: InMemorySpanExporter, traceparent: str) -> None:
    with tracing.handling(replace(an_envelope(), traceparent=traceparent), "handle"):
        pass
    assert named(spans, "handle").links == ()


def test_outside_of_any_span_there_is_no_context_to_send() -> None:
    assert tracing.current_traceparent() == ""


def test_without_opentelemetry_nothing_happens(spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "INSTALLED", False)
    with tracing.handling(an_envelope(), "handle"):
        assert tracing.current_traceparent() == ""
    assert spans.get_finished_spans() == ()
