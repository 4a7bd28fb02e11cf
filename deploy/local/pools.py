"""Whether the evaluator pools have announced themselves."""

from __future__ import annotations

from collections import Counter

from shared import topics, wire
from shared.adapters import open_bus
from shared.errors import Unavailable
from shared.events import CapacityAnnounced, WorkerState


async def announced(bus_url: str) -> Counter[str]:
    """Workers per chip that take work, by their latest word on the bus; none while the broker does not answer."""
    latest: dict[str, CapacityAnnounced] = {}
    try:
        async with open_bus(bus_url) as bus:
            async for delivery in bus.history(topics.CAPACITY):
                event = wire.decode(delivery.record).event
                if isinstance(event, CapacityAnnounced):
                    latest[event.worker_id] = event
    except Unavailable:
        return Counter()
    return Counter(worker.chip for worker in latest.values() if worker.state is WorkerState.READY)
