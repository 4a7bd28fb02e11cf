"""Adding up what models cost, and saying it: an unknown price stays unknown (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shared.events import Spend, Usage

UNKNOWN = -1
"""``Usage.cost_micro`` without a price: never 0, which would look free."""
MICRO = 1_000_000


def total(*parts: Usage) -> Usage:
    """All of ``parts`` together; their cost is unknown as soon as one part's is."""
    costs = [part.cost_micro for part in parts]
    return Usage(
        input_tokens=sum(part.input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        cached_tokens=sum(part.cached_tokens for part in parts),
        cost_micro=UNKNOWN if UNKNOWN in costs else sum(costs),
        latency_ns=sum(part.latency_ns for part in parts),
        reasoning_tokens=sum(part.reasoning_tokens for part in parts),
        cache_write_tokens=sum(part.cache_write_tokens for part in parts),
        requests=sum(part.requests for part in parts),
        estimated=any(part.estimated for part in parts),
        spends=_merged(spend for part in parts for spend in part.spends),
    )


def taken_by(usage: Usage, endpoint: str) -> Usage:
    """``usage``, all of which ``endpoint`` took; where it was sent nothing, nobody did."""
    if not usage.requests:
        return replace(usage, spends=())
    tokens = usage.input_tokens + usage.output_tokens
    share = Spend(endpoint=endpoint, tokens=tokens, cost_micro=usage.cost_micro, requests=usage.requests)
    return replace(usage, spends=(share,))


def shares(usage: Usage, endpoint: str) -> tuple[Spend, ...]:
    """What each took of ``usage``, by name. ``endpoint`` is who answered, or was asked last: what is in nobody's share
    is theirs; an empty name is nobody, where there is such a rest.
    """
    known = total(*(Usage(cost_micro=spend.cost_micro) for spend in usage.spends)).cost_micro
    tokens = usage.input_tokens + usage.output_tokens - sum(spend.tokens for spend in usage.spends)
    requests = usage.requests - sum(spend.requests for spend in usage.spends)
    if UNKNOWN in (known, usage.cost_micro):  # an unknown share makes the sum unknown, and the rest with it
        cost = UNKNOWN if known != UNKNOWN or tokens or requests > 0 else 0
    else:
        cost = usage.cost_micro - known
    rest = Spend(endpoint=endpoint, tokens=max(0, tokens), cost_micro=cost, requests=max(0, requests))
    if endpoint or rest != Spend(endpoint=endpoint):
        return _merged((*usage.spends, rest))
    return usage.spends


def _merged(spends: Iterable[Spend]) -> tuple[Spend, ...]:
    by_name: dict[str, Spend] = {}
    for spend in spends:
        old = by_name.get(spend.endpoint) or Spend(endpoint=spend.endpoint)
        unknown = UNKNOWN in (old.cost_micro, spend.cost_micro)
        by_name[spend.endpoint] = Spend(
            endpoint=spend.endpoint,
            tokens=old.tokens + spend.tokens,
            cost_micro=UNKNOWN if unknown else old.cost_micro + spend.cost_micro,
            requests=old.requests + spend.requests,
        )
    return tuple(by_name[name] for name in sorted(by_name))


def by_a_model(usage: Usage) -> bool:
    """Whether a model had a part in it; what schedules cost is time alone."""
    return bool(usage.requests or usage.input_tokens or usage.output_tokens or usage.cost_micro)


def cost_text(cost_micro: int) -> str:
    """``0.012345``, in the configured currency, or ``unknown``."""
    if cost_micro == UNKNOWN:
        return "unknown"
    return f"{cost_micro // MICRO}.{cost_micro % MICRO:06d}"


def in_words(usage: Usage) -> str:
    """One line: requests, tokens of each kind, cost and latency."""
    aside = [f"{count:,} {kind}" for kind, count in _parts_of_input(usage) if count]
    read = f"{usage.input_tokens:,} tokens read" + (f" ({', '.join(aside)})" if aside else "")
    hidden = f" ({usage.reasoning_tokens:,} reasoning)" if usage.reasoning_tokens else ""
    estimated = ", partly estimated" if usage.estimated else ""
    return (
        f"{usage.requests:,} requests, {read}, {usage.output_tokens:,} written{hidden}{estimated}, "
        f"cost {cost_text(usage.cost_micro)}, {usage.latency_ns / 1e9:.1f} s"
    )


def _parts_of_input(usage: Usage) -> tuple[tuple[str, int], ...]:
    return (("cached", usage.cached_tokens), ("written to the cache", usage.cache_write_tokens))
