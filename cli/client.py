"""A client of a KernelEvolve server, for programs and for the command line.

::

    from cli.client import open_client
    from shared.events import Budget
    from shared.rpc.settings import ClientSettings

    async with open_client(ClientSettings(server="127.0.0.1:50051")) as client:
        submitted = await client.submit("softmax", source, chip="cpu-x86_64", budget=Budget(evaluations=40))
        async for step in client.watch(submitted.search_id):
            print(step.seq, step.fact.event)
        print(await client.get(submitted.search_id))

Answers are the messages of ``protos/search/v1`` and ``protos/operations/v1``, or what is said of each method. Every
method raises ``UserError`` (a mistake: one line says what and how to mend it; ``NotFound``, ``AlreadyExists``,
``Unauthenticated`` and ``NotAllowed`` are kinds of it), ``Unavailable`` (the server cannot be reached or did not answer
in time, after the retries that ``docs/grpc.md`` tells of) or ``Retryable`` (the server failed).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protos.events.v1 import envelope_pb2, values_pb2
from protos.operations.v1 import operations_service_pb2 as operations
from protos.operations.v1 import operations_service_pb2_grpc
from protos.search.v1 import search_service_pb2 as pb
from protos.search.v1 import search_service_pb2_grpc
from shared import proto_codec, wire
from shared.errors import Unavailable, UserError
from shared.events import Budget, Entry, Envelope, ModelBudget
from shared.patience import patiently
from shared.rpc.client import connect
from shared.rpc.errors import as_ours
from shared.rpc.settings import ClientSettings

SOURCES = {"journal": pb.LOG_SOURCE_JOURNAL, "bus": pb.LOG_SOURCE_BUS}
"""Where an exported log may come from."""
REQUEST_ID_BYTES = 16
NO_BUDGET = ModelBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """``created`` is False when the request had been submitted before."""

    search_id: str
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A journal entry of a search: a fact, and what the search decided on it."""

    seq: int
    fact: Envelope
    decisions: tuple[Envelope, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Entries of an exported log, and how many came from the journal although the bus was asked."""

    entries: int
    entries_from_journal: int


@asynccontextmanager
async def open_client(settings: ClientSettings) -> AsyncIterator[KernelEvolveClient]:
    """A client for the length of the block. It connects with the first call.

    Raises:
        UserError: the settings make no sense.
    """
    async with connect(settings) as channel:
        yield KernelEvolveClient(channel, settings.server)


class KernelEvolveClient:
    """Searches on a server: submit, look, watch, cancel, export. One may make any number of calls at the same time."""

    def __init__(self, channel: Any, server: str) -> None:
        """``channel`` is ``shared.rpc.client.connect``'s; ``server`` names it in errors."""
        self.server = server
        self._search: Any = search_service_pb2_grpc.SearchServiceStub(channel)  # type: ignore[no-untyped-call]
        self._operations: Any = operations_service_pb2_grpc.OperationsServiceStub(channel)  # type: ignore[no-untyped-call]

    async def submit(
        self,
        name: str,
        source: str,
        *,
        chip: str,
        budget: Budget,
        policy: str = "",
        parameters: Sequence[Entry] = (),
        seed: int = 0,
        threads: int = 1,
        baseline: str = "",
        priority: int = 0,
        candidates_per_expansion: int = 0,
        expansions_in_flight: int = 0,
        request_id: str = "",
    ) -> Submitted:
        """Start a search for a faster kernel of ``source``, the text of a KernelBench-style module.

        ``request_id`` names the wish: the same one again with the same content is the same search, so a program that
        may be restarted chooses its own. Empty and zero values leave the choice to the server.

        Raises:
            AlreadyExists: ``request_id`` stands for another search.
        """
        request = pb.SubmitRequest(
            client_request_id=request_id or secrets.token_hex(REQUEST_ID_BYTES),
            operator=pb.OperatorSource(name=name, source=source),
            chip=chip,
            policy=policy,
            policy_parameters=[values_pb2.Entry(name=entry.name, value=entry.value) for entry in parameters],
            seed=seed,
            budget=proto_codec.to_message(budget),  # type: ignore[arg-type]
            threads=threads,
            baseline=baseline,
            priority=priority,
            candidates_per_expansion=candidates_per_expansion,
            expansions_in_flight=expansions_in_flight,
        )
        with as_ours(self.server):
            answer = await self._search.Submit(request)
        return Submitted(search_id=answer.search_id, created=answer.created)

    async def get(self, search_id: str) -> pb.Search:
        """A search at a glance."""
        with as_ours(self.server):
            answer: pb.GetResponse = await self._search.Get(pb.GetRequest(search_id=search_id))
        return answer.search

    async def list(self, *, phase: str = "", chip: str = "") -> AsyncIterator[pb.Search]:
        """All searches, newest first, fetched page by page; ``phase`` and ``chip`` choose some."""
        token = ""
        while True:
            request = pb.ListRequest(page_token=token, phase=phase, chip=chip)
            with as_ours(self.server):
                page: pb.ListResponse = await self._search.List(request)
            for search in page.searches:
                yield search
            token = page.next_page_token
            if not token:
                return

    async def watch(self, search_id: str, from_seq: int = 0) -> AsyncGenerator[Step, None]:
        """Every journal entry from ``from_seq`` on, as it is written, until the search has finished. It goes on while
        the search is paused.

        A stream that is lost is taken up again after the last entry seen, for as long as that takes: nothing is
        missed and nothing comes twice. Only a first call that fails raises ``Unavailable``.
        """
        answers = self._answers(search_id, from_seq)

        async def again() -> Step | None:
            nonlocal answers
            await answers.aclose()
            answers = self._answers(search_id, from_seq)
            return await anext(answers, None)

        try:
            step = await anext(answers, None)
            while step is not None:
                from_seq = step.seq + 1
                yield step
                try:
                    step = await anext(answers, None)
                except Unavailable:
                    step = await patiently(again, f"watch search {search_id}")
        finally:
            await answers.aclose()

    async def _answers(self, search_id: str, from_seq: int) -> AsyncGenerator[Step, None]:
        """One stream, as long as it lasts."""
        call = self._search.Watch(pb.WatchRequest(search_id=search_id, from_seq=from_seq))
        try:
            with as_ours(self.server):
                async for answer in call:
                    yield _step(answer)
        finally:
            call.cancel()

    async def cancel(self, search_id: str, reason: str = "") -> None:
        """End a search now, with outcome ``cancelled``. One that has ended stays as it is."""
        with as_ours(self.server):
            await self._search.Cancel(pb.CancelRequest(search_id=search_id, reason=reason))

    async def resume(self, search_id: str, model: ModelBudget = NO_BUDGET) -> None:
        """Go on with a paused search, which may then spend ``model`` in all; zeros leave a limit as it is.

        Raises:
            UserError: it is not paused.
        """
        request = pb.ResumeRequest(search_id=search_id, model_budget=proto_codec.to_message(model))  # type: ignore[arg-type]
        with as_ours(self.server):
            await self._search.Resume(request)

    async def tree(self, search_id: str) -> AsyncIterator[pb.Node]:
        """Every candidate of a search, best first, fetched page by page."""
        token = ""
        while True:
            with as_ours(self.server):
                page = await self._search.GetTree(pb.GetTreeRequest(search_id=search_id, page_token=token))
            for node in page.nodes:
                yield node
            token = page.next_page_token
            if not token:
                return

    async def pools(self) -> Sequence[pb.Pool]:
        """The evaluator pools that announced themselves."""
        with as_ours(self.server):
            answer: pb.ListPoolsResponse = await self._search.ListPools(pb.ListPoolsRequest())
        return answer.pools

    async def export_log(self, search_id: str, path: Path, *, source: str = "journal") -> Exported:
        """Write the log of a search to ``path``, a self-contained ``*.kelog`` file; whole or not at all.

        ``source``: ``journal``, the record, or ``bus``, recomputed from the facts that the bus still holds.

        Raises:
            UserError: ``path`` cannot be written.
        """
        request = pb.ExportLogRequest(search_id=search_id, source=SOURCES[source])
        last = pb.ExportLogResponse()
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with fresh.open("wb") as file, as_ours(self.server):
                async for last in self._search.ExportLog(request):
                    file.write(last.chunk)
            fresh.replace(path)
        except OSError as error:
            raise UserError(f"cannot be written: {error.strerror}", where=str(path)) from error
        finally:
            fresh.unlink(missing_ok=True)
        return Exported(entries=last.entries, entries_from_journal=last.entries_from_journal)

    async def dead_letters(
        self, *, source_topic: str = "", include_redriven: bool = False
    ) -> AsyncIterator[operations.DeadLetter]:
        """Records that could not be handled, oldest first, fetched page by page."""
        token = ""
        while True:
            request = operations.ListDeadLettersRequest(
                source_topic=source_topic, include_redriven=include_redriven, page_token=token
            )
            with as_ours(self.server):
                page = await self._operations.ListDeadLetters(request)
            for letter in page.letters:
                yield letter
            token = page.next_page_token
            if not token:
                return

    async def dead_letter(self, letter_id: str) -> operations.GetDeadLetterResponse:
        """One of them, with the record."""
        request = operations.GetDeadLetterRequest(letter_id=letter_id)
        with as_ours(self.server):
            answer: operations.GetDeadLetterResponse = await self._operations.GetDeadLetter(request)
        return answer

    async def redrive(self, letter_id: str) -> None:
        """Publish the record again, unchanged, on the topic that it came from."""
        with as_ours(self.server):
            await self._operations.RedriveDeadLetter(operations.RedriveDeadLetterRequest(letter_id=letter_id))


def _step(answer: pb.WatchResponse) -> Step:
    return Step(
        seq=answer.seq,
        fact=_envelope(answer.fact),
        decisions=tuple(_envelope(decision) for decision in answer.decisions),
    )


def _envelope(message: envelope_pb2.Envelope) -> Envelope:
    return wire.unpack(message.SerializeToString())
