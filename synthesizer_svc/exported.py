"""What the synthesizer tells about its answers, as metrics."""

from __future__ import annotations

from shared import metrics
from shared.clock import SECOND_NS
from shared.events import CandidateProduced, CandidateRejected, ExpansionFailed, Usage


def answered(fact: CandidateProduced | CandidateRejected | ExpansionFailed) -> None:
    """Counts an answer that was written now, not one that is remembered."""
    if isinstance(fact, CandidateProduced):
        metrics.CANDIDATES.inc("produced")
    else:
        metrics.CANDIDATES.inc(fact.code)
    if not isinstance(fact, ExpansionFailed):
        _spent(fact.usage)


def _spent(usage: Usage) -> None:
    for kind, tokens in (
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cached", usage.cached_tokens),
    ):
        if tokens:
            metrics.TOKENS.inc(kind, by=tokens)
    if usage.cost_micro > 0:  # -1: the price is unknown
        metrics.COST.inc(by=usage.cost_micro)
    if usage.latency_ns:
        metrics.MODEL_SECONDS.observe(usage.latency_ns / SECOND_NS)
