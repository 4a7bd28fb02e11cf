"""What a member of a group knows about the partitions it owns: read, committed, there (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class _Partition:
    committed: int
    """Where the group goes on; the oldest record kept when it has committed nothing."""
    expected: int
    """Offset of the next record."""
    highwater: int | None = None
    """Offset that the next record published will get, as far as heard."""
    beyond_since_s: float | None = None
    """Since when the log has ended before ``expected`` or ``committed``."""


class Positions:
    """``dense`` says that the topic's offsets have no holes: it is not compacted, and nobody writes transactions."""

    def __init__(self, *, dense: bool) -> None:
        self._dense = dense
        self._partitions: dict[int, _Partition] = {}
        self._handed: dict[int, int] = {}
        self.gaps = 0
        """Records that were skipped: taken by retention before they were read, or lost by the broker."""

    @property
    def owned(self) -> frozenset[int]:
        return frozenset(self._partitions)

    def assign(self, committed: Mapping[int, int]) -> None:
        """Own exactly these partitions; the group goes on at these offsets."""
        self._partitions = {
            partition: _Partition(committed=offset, expected=offset) for partition, offset in committed.items()
        }

    def revoke(self) -> None:
        self._partitions = {}

    def hand(self, partition: int, offset: int) -> int:
        """Note that a record is handed out. Returns how many before it are missing.

        Those are not that were in flight over a rebalance and committed since: the driver may begin behind them.
        """
        known = self._partitions[partition]
        missing = max(0, offset - max(known.expected, known.committed)) if self._dense else 0
        self.gaps += missing
        known.expected = offset + 1
        self._handed[partition] = max(self._handed.get(partition, 0), offset + 1)
        return missing

    def may_commit(self, partition: int, offset: int) -> bool:
        """Whether the record was handed out from the log as it is now, and the group is not past it."""
        known = self._partitions.get(partition)
        if known is None or not known.committed <= offset + 1 <= self._handed.get(partition, 0):
            return False
        return known.highwater is None or offset < known.highwater

    def commit(self, partition: int, offset: int) -> None:
        known = self._partitions.get(partition)
        if known is not None:
            known.committed = max(known.committed, offset + 1)

    def hear(self, partition: int, highwater: int | None) -> None:
        if highwater is not None and partition in self._partitions:
            self._partitions[partition].highwater = highwater

    def lag(self) -> int:
        return sum(
            max(0, known.highwater - known.committed)
            for known in self._partitions.values()
            if known.highwater is not None
        )

    def went_back(self, now_s: float, patience_s: float) -> list[int]:
        """Partitions whose log has ended before where the group is, for ``patience_s``: the broker lost records.

        A new leader says so for a moment although nothing is lost, hence the patience.
        """
        lost = []
        for partition, known in self._partitions.items():
            if known.highwater is None or known.highwater >= max(known.expected, known.committed):
                known.beyond_since_s = None
            elif known.beyond_since_s is None:
                known.beyond_since_s = now_s
            elif now_s - known.beyond_since_s >= patience_s:
                lost.append(partition)
        return lost

    def rewind(self, partition: int) -> None:
        """Start over at the beginning of a log that went back, and commit from there."""
        self._partitions[partition] = _Partition(committed=0, expected=0)
        self._handed[partition] = 0
