"""What models cost, for people and as JSON; a price that is not known is null, or "unknown" (pure)."""

from __future__ import annotations

from typing import Any

from search_svc.projection import Summary
from shared.events import Usage
from shared.usage import MICRO, UNKNOWN, by_a_model, cost_text, in_words

NS_PER_S = 1_000_000_000


def plain(usage: Usage) -> dict[str, Any]:
    """A usage as a JSON object; ``cost`` is in the configured currency."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "estimated": usage.estimated,
        "cost": _currency(usage.cost_micro),
        "seconds": round(usage.latency_ns / NS_PER_S, 3),
        "by_endpoint": {
            spend.endpoint: {"requests": spend.requests, "tokens": spend.tokens, "cost": _currency(spend.cost_micro)}
            for spend in usage.spends
        },
    }


def by_endpoint(usage: Usage) -> str:
    """What each endpoint took, where more than one was asked for it; empty otherwise."""
    if len(usage.spends) < 2:
        return ""
    return "; ".join(
        f"{spend.endpoint} {spend.tokens:,} tokens in {spend.requests:,} requests, cost {cost_text(spend.cost_micro)}"
        for spend in usage.spends
    )


def model_object(summary: Summary) -> dict[str, Any] | None:
    """What models cost a search, and where schedules stood in for them; null for a search without one."""
    count, because = summary.stood_in
    if not by_a_model(summary.spent) and not count:
        return None
    return {**plain(summary.spent), "stood_in": count, "because": because or None}


def cell(usage: Usage) -> str:
    """A usage in a table: tokens read and written, and cost; empty where no model had a part."""
    if not by_a_model(usage):
        return ""
    return in_words(usage)


def _currency(cost_micro: int) -> float | None:
    return None if cost_micro == UNKNOWN else cost_micro / MICRO
