"""What the synthesizer tells about its answers, as metrics."""

from __future__ import annotations

from shared import metrics
from shared.clock import SECOND_NS
from shared.events import CandidateProduced, CandidateRejected, ExpansionFailed, Usage
from shared.usage import UNKNOWN, shares


def answered(fact: CandidateProduced | CandidateRejected | ExpansionFailed) -> None:
    """Counts an answer that was written now, not one that is remembered."""
    if isinstance(fact, CandidateProduced):
        metrics.CANDIDATES.inc("produced")
    else:
        metrics.CANDIDATES.inc(fact.code)
    _spent(fact.usage, "" if isinstance(fact, ExpansionFailed) else fact.context.endpoint)


def _spent(usage: Usage, endpoint: str) -> None:
    for kind, tokens in (
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cached", usage.cached_tokens),
        ("cache_write", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    ):
        if tokens:
            metrics.TOKENS.inc(kind, by=tokens)
    for share in shares(usage, endpoint):
        if share.requests:
            metrics.MODEL_REQUESTS.inc(share.endpoint or "none", by=share.requests)
    if usage.cost_micro == UNKNOWN:
        metrics.UNPRICED.inc()
    elif usage.cost_micro:
        metrics.COST.inc(by=usage.cost_micro)
    if usage.latency_ns:
        metrics.WRITING_SECONDS.observe(usage.latency_ns / SECOND_NS)
