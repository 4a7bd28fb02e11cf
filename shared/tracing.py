"""Trace context in and out of envelopes; does nothing where OpenTelemetry is not installed.

A handler's span *links* to the producer's instead of being its child: a record may be handled long after it was sent,
and more than once (https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from shared.events import Envelope


def _installed() -> bool:
    try:
        return find_spec("opentelemetry.trace") is not None
    except ModuleNotFoundError:
        return False


INSTALLED = _installed()


def current_traceparent() -> str:
    """W3C ``traceparent`` of the span in force, or an empty string: what a new envelope carries."""
    if not INSTALLED:
        return ""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


@contextmanager
def handling(envelope: Envelope, name: str) -> Iterator[None]:
    """A span around the handling of ``envelope``, linked to the one that published it."""
    if not INSTALLED:
        yield
        return
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({"traceparent": envelope.traceparent})
    producer = trace.get_current_span(context).get_span_context()
    links = [trace.Link(producer)] if producer.is_valid else []
    attributes = {"messaging.message.id": envelope.id, "messaging.message.conversation_id": envelope.correlation_id}
    with trace.get_tracer("kernelevolve").start_as_current_span(name, links=links, attributes=attributes):
        yield
