"""Standard gRPC health (``grpc.health.v1``), following the runtime's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from grpc_health.v1 import health, health_pb2

from shared.health import Health

REFRESH_S = 0.2
"""How far the answer may be behind the runtime. Probes come every few seconds."""
OVERALL = ""
"""The name that the protocol gives to the server as a whole."""
LIVENESS = "liveness"
"""Not SERVING means: restart the process. Readiness, which the other names tell, also waits for dependencies."""

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def open_servicer() -> Any:
    """The library's servicer for asyncio, which its stubs leave out."""
    return health.aio.HealthServicer()  # type: ignore[attr-defined]


async def follow(servicer: Any, by_name: Mapping[str, Health], all_of: Sequence[Health]) -> None:
    """Keep ``servicer`` telling what the runtime knows, until cancelled."""
    while True:
        await tell(servicer, by_name, all_of)
        await asyncio.sleep(REFRESH_S)


async def tell(servicer: Any, by_name: Mapping[str, Health], all_of: Sequence[Health]) -> None:
    """Set every answer once: each gRPC service by its name, the server as a whole, and whether to leave it alone."""
    for name, state in by_name.items():
        await servicer.set(name, SERVING if state.ready else NOT_SERVING)
    await servicer.set(OVERALL, SERVING if all(state.ready for state in all_of) else NOT_SERVING)
    await servicer.set(LIVENESS, SERVING if all(state.live for state in all_of) else NOT_SERVING)
