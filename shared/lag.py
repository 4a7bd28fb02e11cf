"""Sampling how far consumers are behind: the sum over the members of this process, per topic and group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from shared import metrics, topics
from shared.bus import Subscription


class LagSampler:
    """Writes ``metrics.LAG``. Members of other processes report theirs: a query sums over processes."""

    def __init__(self, members: Iterable[tuple[str, str, Subscription]]) -> None:
        """``members``: topic, group and open subscription of each."""
        self._members = tuple(members)

    def sample(self) -> None:
        behind: Counter[tuple[str, str]] = Counter()
        for topic, group, subscription in self._members:
            behind[topic, group] += subscription.lag()
        for (topic, group), records in behind.items():
            metrics.LAG.set(records, topic, group, topics.chip_of(topic))
