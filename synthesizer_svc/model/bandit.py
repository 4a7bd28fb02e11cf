"""Which endpoint to ask first: Thompson sampling of gain per cost (pure).

Each endpoint's chance of a gain has a Beta posterior, whose prior is one gain in two questions that nobody asked; one
draw of it, times the mean gain, over the mean cost, times the configured weight, is its worth for one question. So an
endpoint that was never asked is tried, one that gains little for its price is asked now and then, and what decides is
in the request: asked again, the same question goes to the same endpoint.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from shared import ids
from shared.events import EndpointRecord
from shared.usage import UNKNOWN

PRIOR_GAIN_MICRO = 50_000
"""ln(1.05): what a gain is believed to be worth before there was one."""


def ranked(weights: Mapping[str, int], records: Sequence[EndpointRecord], *, seed: int, question: str) -> list[str]:
    """The endpoints in ``weights``, best first, for the question of that hash."""
    known = {record.endpoint: record for record in records}
    arms = {name: known.get(name) or EndpointRecord(endpoint=name) for name in sorted(weights)}
    costs = _mean_costs(arms)
    stream = ids.stream(seed, question, "endpoint")
    drawn = {name: weights[name] * _gain(record, stream) / costs[name] for name, record in arms.items()}
    return sorted(drawn, key=lambda name: (-drawn[name], name))


def _gain(record: EndpointRecord, stream: random.Random) -> float:
    """A draw of what one more question gains."""
    chance = stream.betavariate(1 + record.gains, 1 + max(0, record.asked - record.gains))
    return chance * (PRIOR_GAIN_MICRO + record.gain_micro) / (1 + record.gains)


def _mean_costs(arms: Mapping[str, EndpointRecord]) -> dict[str, float]:
    """What a question costs at each: money where every price that was paid is known, tokens otherwise.

    Few questions say little, so each mean includes one question at what all together cost on average.
    """
    by_tokens = any(record.cost_micro == UNKNOWN for record in arms.values())
    spent = {name: float(record.tokens if by_tokens else record.cost_micro) for name, record in arms.items()}
    asked = sum(record.asked for record in arms.values())
    typical = max(1.0, sum(spent.values()) / max(1, asked))
    return {name: (typical + spent[name]) / (1 + record.asked) for name, record in arms.items()}
