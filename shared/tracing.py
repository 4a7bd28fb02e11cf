"""Trace context in and out of envelopes; does nothing where OpenTelemetry is not installed.

One search is one trace. Its root is the call that submitted it; a handler's span is the child of the span that
published the record, or that published the fact behind the command, since a command carries its cause's context and a
decision has none of its own. So the trace reads as the causes do: Submit, synthesis, evaluation, result, next
synthesis. The semantic conventions allow a consumer's span to be a child where one record is handled at a time
(https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/).

Records of no search (skills, capacity) are kept for ever and may be read long after: their handlers' spans only *link*
to the producer's.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

from shared import envelopes
from shared.errors import UserError
from shared.events import Envelope
from shared.redaction import Redaction

NAME = "kernelevolve"
TRACEPARENT = "traceparent"


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


INSTALLED = _installed("opentelemetry.trace")


def current_traceparent() -> str:
    """W3C ``traceparent`` of the span in force, or an empty string: what a new envelope carries."""
    if not INSTALLED:
        return ""
    carrier: dict[str, str] = {}
    _propagator().inject(carrier)
    return carrier.get(TRACEPARENT, "")


def onward(cause: Envelope) -> str:
    """``traceparent`` of what is published because of ``cause``: the span in force, else the one the cause carries."""
    return current_traceparent() or cause.traceparent


def current_ids() -> dict[str, str]:
    """``trace_id`` and ``span_id`` of the span in force, as hexadecimal digits; empty without one."""
    parts = current_traceparent().split("-")
    return {"trace_id": parts[1], "span_id": parts[2]} if len(parts) == 4 else {}


@contextmanager
def handling(envelope: Envelope, name: str) -> Iterator[None]:
    """A span around the handling of ``envelope``, in the trace of its search."""
    if not _recording():
        yield
        return
    from opentelemetry import trace

    about = envelopes.names(envelope.event)
    attributes = {
        "messaging.operation.type": "process",
        "messaging.message.id": envelope.id,
        "messaging.message.conversation_id": envelope.correlation_id,
        **{f"{NAME}.{key}": value for key, value in about.items()},
    }
    context = _extract({TRACEPARENT: envelope.traceparent})
    producer = trace.get_current_span(context).get_span_context()
    joins = "search_id" in about
    links = [trace.Link(producer)] if producer.is_valid and not joins else []
    with _span(
        name,
        context=context if joins else None,
        links=links,
        attributes=attributes,
        kind=trace.SpanKind.CONSUMER,
    ):
        yield


@contextmanager
def answering(name: str, metadata: Mapping[str, str], **about: str) -> Iterator[None]:
    """A span around the answering of a call, a child of the caller's when its ``metadata`` has a ``traceparent``.

    Without one it is a child of the span in force, or the root of a trace.
    """
    if not _recording():
        yield
        return
    from opentelemetry import trace

    attributes = {f"{NAME}.{key}": value for key, value in about.items()}
    context = _extract(metadata) if TRACEPARENT in metadata else None
    with _span(name, context=context, attributes=attributes, kind=trace.SpanKind.SERVER):
        yield


@contextmanager
def _span(name: str, **about: Any) -> Iterator[None]:
    """The span in force in the block. It tells of an error that ends the block, as logs do: without secrets."""
    from opentelemetry import trace

    with trace.get_tracer(NAME).start_as_current_span(
        name, record_exception=False, set_status_on_exception=False, **about
    ) as span:
        try:
            yield
        except Exception as error:
            redact = Redaction(os.environ)
            told = {
                "exception.message": redact(str(error)),
                "exception.stacktrace": redact("".join(traceback.format_exception(error))),
            }
            span.record_exception(error, attributes=told)
            span.set_status(trace.StatusCode.ERROR, redact(f"{type(error).__name__}: {error}"))
            raise


@contextmanager
def exported(service: str, endpoint: str) -> Iterator[None]:
    """Send spans that end in the block to the OTLP collector (gRPC) at ``endpoint``; an empty one sends nothing.

    To be called once per process. The standard variables (``OTEL_EXPORTER_OTLP_*``, ``OTEL_TRACES_SAMPLER``,
    ``OTEL_RESOURCE_ATTRIBUTES``) do what OpenTelemetry says; a collector that is gone costs spans, never a record.

    Raises:
        UserError: the SDK or its exporter is missing.
    """
    if not endpoint:
        yield
        return
    if not (_installed("opentelemetry.sdk.trace") and _installed("opentelemetry.exporter.otlp.proto.grpc")):
        raise UserError(
            "needs the extra `tracing`",
            where=f"OTEL_EXPORTER_OTLP_ENDPOINT={endpoint}",
            hint="pip install kernelevolve[tracing]",
        )
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


def _recording() -> bool:
    """Whether spans go anywhere: this program or its host has set a provider. Otherwise a context only passes by."""
    if not INSTALLED:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@cache
def _propagator() -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()


def _extract(carrier: Mapping[str, str]) -> Any:
    from opentelemetry.context import Context

    return _propagator().extract(carrier, context=Context())
