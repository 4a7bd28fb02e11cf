"""Whether the evaluator pools have announced themselves."""

from __future__ import annotations

from shared import topics, wire
from shared.adapters import open_bus
from shared.events import CapacityAnnounced, WorkerState


async def announced(bus_url: str) -> dict[str, int]:
    """Workers per chip that take work, by their latest word on the bus. Raises ``Unavailable`` without a broker."""
    latest: dict[str, CapacityAnnounced] = {}
    async with open_bus(bus_url) as bus:
        async for delivery in bus.history(topics.CAPACITY):
            event = wire.decode(delivery.record).event
            if isinstance(event, CapacityAnnounced):
                latest[event.worker_id] = event
    counts: dict[str, int] = {}
    for worker in latest.values():
        if worker.state is WorkerState.READY:
            counts[worker.chip] = counts.get(worker.chip, 0) + 1
    return counts
