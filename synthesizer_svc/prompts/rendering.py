"""The templates of prompts, and the filters they write untrusted text with (pure)."""

from __future__ import annotations

import jinja2

from shared.events import PPM, Entry, Speedup
from synthesizer_svc.prompts import quoting


def render(template: str, **values: object) -> str:
    """``template`` of ``synthesizer_svc/templates`` with ``values``; equal values give equal text."""
    return _ENVIRONMENT.get_template(template).render(**values).strip("\n")


def exists(template: str) -> bool:
    return template in _ENVIRONMENT.list_templates()


def times(speedup: Speedup) -> str:
    """A speedup with its interval."""
    return f"{speedup.ratio_ppm / PPM:.3f} [{speedup.low_ppm / PPM:.3f}, {speedup.high_ppm / PPM:.3f}]"


def _environment() -> jinja2.Environment:
    # Prompts are plain text: escaping for HTML would corrupt the code in them.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("synthesizer_svc", "templates"),
        autoescape=False,  # noqa: S701
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        inline=quoting.inline,
        fenced=quoting.fenced,
        times=times,
        percent=lambda ppm: f"{ppm / PPM:.0%}",
        microseconds=lambda ns: f"{ns / 1000:.1f}",
        evidence=_evidence,
    )
    return environment


def _evidence(entry: Entry) -> str:
    return quoting.evidence(entry.name, entry.value)


_ENVIRONMENT = _environment()
