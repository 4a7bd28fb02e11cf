"""What a process tells about itself, switched on in one place: metrics and traces, named after its services."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from shared import logs, metrics, tracing

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Read from the environment without a prefix."""

    metrics_listen: str = ""
    """``METRICS_LISTEN``: ``host:port`` that answers ``GET /metrics``; empty: none."""
    otel_exporter_otlp_endpoint: str = ""
    """OpenTelemetry's own variable: where spans go, e.g. ``http://localhost:4317``; empty: nowhere."""
    otel_service_name: str = ""
    """OpenTelemetry's own variable; empty: ``kernelevolve-`` and the services of the process."""


@contextmanager
def told(settings: TelemetrySettings, services: Sequence[str]) -> Iterator[None]:
    """Record metrics, export spans and name the services in log lines, for the length of the block.

    Raises:
        UserError: an address is unusable, or the extra that a setting needs is missing.
    """
    name = "+".join(services)
    with (
        logs.about(service=name),
        tracing.exported(
            settings.otel_service_name or f"kernelevolve-{name}",
            settings.otel_exporter_otlp_endpoint,
        ),
        metrics.serving(settings.metrics_listen) as address,
    ):
        if address:
            log.info("metrics at http://%s/metrics", address)
        yield
