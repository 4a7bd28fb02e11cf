"""Which requests an intake has taken from the topic and which offsets it may commit (pure)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from shared.bus import Delivery


@dataclass(slots=True)
class Tracked:
    """A delivery in flight. ``work_id`` is empty for poison, which is done with once it is buried."""

    delivery: Delivery
    work_id: str
    added: bool = False
    """In the queue, as far as this intake knows."""
    finished: bool = False


@dataclass(slots=True)
class Tracking:
    """The deliveries in flight of every partition, in the order they came."""

    partitions: dict[int, dict[int, Tracked]] = field(default_factory=dict)
    """Partition -> offset -> delivery."""

    def __len__(self) -> int:
        return sum(len(offsets) for offsets in self.partitions.values())

    def track(self, delivery: Delivery, work_id: str) -> Tracked | None:
        """The new entry, or None for a delivery that is in flight already.

        A partition that starts over before what was seen of it, or with other records, is another log or was somebody
        else's meanwhile: what was in flight of it is forgotten and comes again.
        """
        offsets = self.partitions.setdefault(delivery.partition, {})
        known = offsets.get(delivery.offset)
        if known is not None and known.work_id == work_id:
            return None
        if known is not None or (offsets and delivery.offset < next(reversed(offsets))):
            offsets.clear()
        offsets[delivery.offset] = tracked = Tracked(delivery, work_id)
        return tracked

    def is_tracked(self, tracked: Tracked) -> bool:
        """False once its partition was forgotten or it was committed."""
        return self.partitions.get(tracked.delivery.partition, {}).get(tracked.delivery.offset) is tracked

    def waited_for(self) -> list[Tracked]:
        """Those that are in the queue and not known to be finished."""
        return [
            tracked
            for offsets in self.partitions.values()
            for tracked in offsets.values()
            if tracked.added and not tracked.finished
        ]

    def finish(self, work_ids: Collection[str]) -> None:
        for tracked in self.waited_for():
            tracked.finished = tracked.work_id in work_ids

    def committable(self) -> list[Tracked]:
        """Of every partition the last delivery before the first unfinished one, if there is any."""
        found = []
        for offsets in self.partitions.values():
            last = None
            for tracked in offsets.values():
                if not tracked.finished:
                    break
                last = tracked
            if last is not None:
                found.append(last)
        return found

    def committed(self, tracked: Tracked) -> None:
        """Forget it and what came before it on its partition."""
        offsets = self.partitions.get(tracked.delivery.partition, {})
        for offset in [offset for offset in offsets if offset <= tracked.delivery.offset]:
            del offsets[offset]

    def forget(self, partition: int) -> None:
        """Nothing of this partition is ours any more."""
        self.partitions.pop(partition, None)
