"""Trial builds by evaluators over gRPC: a pool for each chip."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from protos.evaluator.v1 import evaluator_service_pb2 as pb
from protos.evaluator.v1 import evaluator_service_pb2_grpc as rpc
from shared import proto_codec
from shared.errors import Poison, Unavailable, UserError
from shared.events import Status
from shared.rpc.client import connect
from shared.rpc.errors import as_ours
from shared.rpc.settings import ClientSettings
from shared.trial_build import TEXT_CHARS_MAX, BuildErrors, Built, TrialKernel
from synthesizer_svc.remote_knowledge import client_settings

VARIABLE = "EVALUATOR_URLS"


class RemoteTrials:
    """Implements ``TrialBuild``. Connects to a pool when it is first asked; ``close`` ends all connections."""

    def __init__(self, clients: Mapping[str, ClientSettings]) -> None:
        """``clients`` maps a chip to how its pool is called."""
        self._clients = clients
        self._exits = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._stubs: dict[str, Any] = {}

    async def build(self, kernel: TrialKernel) -> Built | BuildErrors:
        """See the port."""
        client = self._clients.get(kernel.chip)
        if client is None:
            raise UserError(f"names no evaluator of chip `{kernel.chip}`", where=VARIABLE)
        stub = await self._connected(kernel.chip, client)
        request = pb.BuildRequest(
            chip=kernel.chip,
            language=kernel.language,
            kernel_source=kernel.source,
            flags=kernel.flags,
            entry=kernel.entry,
        )
        with as_ours(client.server):
            answer = await stub.Build(request)
        if answer.built:
            return Built()
        try:
            status = proto_codec.member(Status, answer.status, "status") or Status.COMPILE_ERROR
        except Poison as error:
            raise Unavailable(f"{client.server} answers what this version cannot read: {error}") from error
        return BuildErrors(status=status, text=answer.text[:TEXT_CHARS_MAX])

    async def close(self) -> None:
        """End the connections."""
        await self._exits.aclose()
        self._stubs.clear()

    async def _connected(self, chip: str, client: ClientSettings) -> Any:
        async with self._opening:
            if chip not in self._stubs:
                channel = await self._exits.enter_async_context(connect(client))
                self._stubs[chip] = rpc.EvaluatorServiceStub(channel)  # type: ignore[no-untyped-call]
        return self._stubs[chip]


def clients(text: str, environment: Mapping[str, str]) -> dict[str, ClientSettings]:
    """The pools that ``text`` names: ``chip=grpc://host:port``, separated by commas.

    Raises:
        UserError: it does not parse, or names a chip twice.
    """
    found: dict[str, ClientSettings] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        chip, separator, url = part.partition("=")
        if not separator or not chip.strip() or chip.strip() in found:
            hint = "write chip=grpc://host:port, separated by commas, each chip once"
            where = VARIABLE if "@" in part else f"{VARIABLE}={part}"
            raise UserError("is no list of evaluators", where=where, hint=hint)
        found[chip.strip()] = client_settings(url.strip(), environment, VARIABLE)
    return found
