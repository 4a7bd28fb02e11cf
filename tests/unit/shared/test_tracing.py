"""Trace context crosses the bus, one trace per search, and costs nothing where OpenTelemetry is absent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared import tracing
from shared.events import Envelope, SkillRetired
from shared.redaction import never_show
from tests.unit.shared.builders import an_envelope


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def named(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    return next(span for span in spans.get_finished_spans() if span.name == name)


def published(spans: InMemorySpanExporter, envelope: Envelope) -> Envelope:
    with trace.get_tracer("test").start_as_current_span("publish"):
        return replace(envelope, traceparent=tracing.current_traceparent())


def test_handling_goes_on_in_the_trace_of_the_span_that_published(spans: InMemorySpanExporter) -> None:
    envelope = published(spans, an_envelope())
    with tracing.handling(envelope, "handle"):
        assert tracing.current_traceparent() not in ("", envelope.traceparent)
        assert tracing.onward(envelope) == tracing.current_traceparent()
    span, cause = named(spans, "handle"), named(spans, "publish")
    assert span.parent.span_id == cause.context.span_id
    assert span.context.trace_id == cause.context.trace_id
    assert span.links == ()
    assert span.attributes["messaging.message.id"] == envelope.id
    assert span.attributes["kernelevolve.search_id"] == envelope.event.search_id


def test_handling_a_record_kept_for_ever_only_links_to_the_span_that_published(spans: InMemorySpanExporter) -> None:
    skill = SkillRetired(skill_id="skill-1", reason="contradicted")
    with tracing.handling(published(spans, replace(an_envelope(), event=skill)), "handle"):
        pass
    (link,) = named(spans, "handle").links
    assert link.context.span_id == named(spans, "publish").context.span_id
    assert named(spans, "handle").parent is None


@pytest.mark.parametrize("traceparent", ["", "garbage"])
def test_an_envelope_without_a_usable_context_begins_a_trace(spans: InMemorySpanExporter, traceparent: str) -> None:
    with tracing.handling(replace(an_envelope(), traceparent=traceparent), "handle"):
        pass
    assert named(spans, "handle").parent is None
    assert named(spans, "handle").links == ()


def test_a_call_goes_on_in_the_trace_of_its_caller(spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("test").start_as_current_span("client"):
        metadata = {"traceparent": tracing.current_traceparent()}
    with tracing.answering("Submit", metadata, search_id="s-1"):
        ids = tracing.current_ids()
    span = named(spans, "Submit")
    assert span.parent.span_id == named(spans, "client").context.span_id
    assert ids == {"trace_id": f"{span.context.trace_id:032x}", "span_id": f"{span.context.span_id:016x}"}


@pytest.mark.parametrize(
    "begin", [lambda: tracing.handling(an_envelope(), "work"), lambda: tracing.answering("work", {})]
)
def test_a_span_tells_of_the_error_that_ended_it_and_of_no_secret(spans: InMemorySpanExporter, begin) -> None:
    never_show("ke/planted-in-a-span")
    with pytest.raises(RuntimeError), begin():
        try:
            raise KeyError("ke/planted-in-a-span")  # noqa: TRY301 - a cause
        except KeyError as error:
            raise RuntimeError(r"refused ke\/planted-in-a-span at redis://me:pass@host") from error
    span = named(spans, "work")
    (event,) = span.events
    assert event.attributes["exception.type"] == "RuntimeError"
    assert event.attributes["exception.message"] == "refused … at redis://…@host"
    assert "test_tracing.py" in event.attributes["exception.stacktrace"]
    assert span.status.description == "RuntimeError: refused … at redis://…@host"
    assert "planted" not in span.to_json()
    assert "pass" not in span.to_json()


def test_outside_of_any_span_what_follows_carries_the_context_of_its_cause() -> None:
    envelope = replace(an_envelope(), traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    assert tracing.onward(envelope) == envelope.traceparent
    assert tracing.current_ids() == {}


def test_outside_of_any_span_there_is_no_context_to_send() -> None:
    assert tracing.current_traceparent() == ""


def test_without_opentelemetry_nothing_happens(spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "INSTALLED", False)
    with tracing.handling(an_envelope(), "handle"):
        assert tracing.current_traceparent() == ""
    assert spans.get_finished_spans() == ()
