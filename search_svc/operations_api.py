"""``protos.operations.v1.OperationsService``: message in, message out; errors become statuses in ``shared.rpc``."""

from __future__ import annotations

import heapq
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from protos.operations.v1 import operations_service_pb2 as pb
from protos.operations.v1 import operations_service_pb2_grpc as rpc
from search_svc.operations import DeadLetters
from shared import paging
from shared.dead_letters import DeadLetter
from shared.ports import Ports
from shared.service import Servicer

PAGE, PAGE_MAX = 100, 1000


class OperationsServicer(rpc.OperationsServiceServicer):
    """Reads bus and store, so any replica answers."""

    def __init__(self, ports: Ports) -> None:
        self._letters = DeadLetters(ports.bus, ports.store.documents)

    def servicer(self) -> Servicer:
        """For the runtime's server."""
        return Servicer(
            name=pb.DESCRIPTOR.services_by_name["OperationsService"].full_name,
            add=lambda server: rpc.add_OperationsServiceServicer_to_server(self, server),
        )

    async def ListDeadLetters(self, request: pb.ListDeadLettersRequest, context: Any) -> pb.ListDeadLettersResponse:
        """See the proto file."""
        size = paging.size(request.page_size, default=PAGE, most=PAGE_MAX)
        after = paging.key(request.page_token)
        marked = await self._letters.all_redriven()
        kept: list[tuple[str, pb.DeadLetter]] = []
        async for letter in self._letters.all(request.source_topic):
            if (key := _order(letter)) <= after:
                continue
            redriven = (letter.letter_id, letter.fingerprint) in marked
            if request.include_redriven or not redriven:
                kept.append((key, message(letter, redriven=redriven)))
            if len(kept) > 2 * size:
                kept = _first(kept, size + 1)
        page = _first(kept, size)
        more = len(kept) > size
        return pb.ListDeadLettersResponse(
            letters=[told for _, told in page], next_page_token=paging.token(page[-1][0]) if more else ""
        )

    async def GetDeadLetter(self, request: pb.GetDeadLetterRequest, context: Any) -> pb.GetDeadLetterResponse:
        """See the proto file."""
        letter = await self._letters.get(request.letter_id)
        told = message(letter, redriven=await self._letters.redriven(letter))
        return pb.GetDeadLetterResponse(letter=told, value=letter.original.value, headers=dict(letter.original.headers))

    async def RedriveDeadLetter(
        self,
        request: pb.RedriveDeadLetterRequest,
        context: Any,
    ) -> pb.RedriveDeadLetterResponse:
        """See the proto file."""
        await self._letters.redrive(request.letter_id)
        return pb.RedriveDeadLetterResponse()


def message(letter: DeadLetter, *, redriven: bool) -> pb.DeadLetter:
    """``letter`` without its record's value and headers."""
    failed_at = Timestamp()
    failed_at.FromNanoseconds(letter.first_failed_ns)
    return pb.DeadLetter(
        letter_id=letter.letter_id,
        source_topic=letter.topic,
        source_partition=letter.partition,
        source_offset=letter.offset,
        group=letter.group,
        error=letter.error,
        attempts=letter.attempts,
        first_failed_at=failed_at,
        key=letter.original.key.encode(errors="backslashreplace").decode(),
        value_bytes=len(letter.original.value),
        redriven=redriven,
    )


def _order(letter: DeadLetter) -> str:
    """Sorts by the time of failure, then by where it lies."""
    return f"{letter.first_failed_ns:020d} {letter.letter_id}"


def _first(letters: list[tuple[str, pb.DeadLetter]], count: int) -> list[tuple[str, pb.DeadLetter]]:
    return heapq.nsmallest(count, letters, key=lambda pair: pair[0])
