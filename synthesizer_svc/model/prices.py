"""What tokens cost, where that is known (pure)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from shared.events import Usage
from shared.usage import UNKNOWN

MILLION = 1_000_000
MOST = 10**12
"""A million of the currency for a million tokens. Sums of what costs more do not fit an event."""
CACHE_WRITE_PERCENT = 125
"""Of the input price, where writing to the cache has none of its own: what vendors ask that bill five minutes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """For a million tokens, in millionths of ``currency``; None is unknown, 0 is free.

    Raises:
        ValueError: a negative price, or one above ``MOST``.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    """Of prompt tokens read from the endpoint's cache; as ``input`` when left out."""
    cache_write: int | None = None
    """Of prompt tokens written to its cache; five quarters of ``input`` when left out."""
    currency: str = "USD"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and not 0 <= value <= MOST:
                raise ValueError(f"{field.name} is {value}, expected 0 to {MOST}")

    @property
    def known(self) -> bool:
        return self.input is not None and self.output is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSettings:
    """``MODEL_PRICES_*``: prices of the endpoint of ``MODEL_URL``, in the units of ``Prices``; -1 is unknown.

    Raises:
        ValueError: a price below -1.
    """

    input: int = -1
    output: int = -1
    cached: int = -1
    """Of prompt tokens read from its cache; unknown: as ``input``."""
    cache_write: int = -1
    """Of prompt tokens written to its cache; unknown: five quarters of ``input``."""
    currency: str = "USD"

    def __post_init__(self) -> None:
        if min(self.input, self.output, self.cached, self.cache_write) < -1:
            raise ValueError("a price is negative; -1 is unknown")

    @property
    def table(self) -> dict[str, int | str]:
        """The options of a ``prices`` table; empty without a price."""
        prices: dict[str, int | str] = {
            name: price
            for name in ("input", "output", "cached", "cache_write")
            if (price := getattr(self, name)) != UNKNOWN
        }
        return prices | {"currency": self.currency} if prices else {}


def cost_micro(usage: Usage, prices: Prices) -> int:
    """The price of ``usage`` in millionths of the currency, rounded up; ``UNKNOWN`` without one. No tokens cost 0."""
    if usage.input_tokens == usage.output_tokens == 0:
        return 0
    if prices.input is None or prices.output is None:
        return UNKNOWN
    cached = prices.input if prices.cached is None else prices.cached
    written = -(-prices.input * CACHE_WRITE_PERCENT // 100) if prices.cache_write is None else prices.cache_write
    fresh = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens)
    price = (
        fresh * prices.input
        + usage.cached_tokens * cached
        + usage.cache_write_tokens * written
        + usage.output_tokens * prices.output
    )
    return -(-price // MILLION)


def dearest_micro(usage: Usage, prices: Prices) -> int:
    """The most that ``usage`` can cost, however its prompt is cached; ``UNKNOWN`` without a price."""
    return max(
        cost_micro(replace(usage, cached_tokens=cached, cache_write_tokens=written), prices)
        for cached, written in ((0, 0), (usage.input_tokens, 0), (0, usage.input_tokens))
    )
