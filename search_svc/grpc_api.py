"""``protos.search.v1.SearchService``: message in, message out; what it raises becomes a status in ``shared.rpc``."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc

from protos.search.v1 import search_service_pb2 as pb
from protos.search.v1 import search_service_pb2_grpc as rpc
from search_svc import export, index, messages, replay
from search_svc.index import Index
from search_svc.news import News
from search_svc.pools import Pools
from search_svc.settings import Settings
from search_svc.submissions import Submissions
from search_svc.tree import Tree
from shared import chips, ids, operators, paging
from shared.errors import NotFound, UserError
from shared.events import SearchStarted
from shared.ports import Ports
from shared.service import Servicer
from shared.store import JournalEntry

Context = grpc.aio.ServicerContext[Any, Any]
PHASES = ("", "submitted", "searching", "confirming", "paused", "finished")
CANDIDATES_PER_EXPANSION = 2
EXPANSIONS_MIN, EXPANSIONS_MAX = 2, 16
"""Bounds of the expansions in flight that the server chooses: a deep look-ahead decides on old news."""
ROWS_PER_CALL_MAX = 2_000
"""Searches that one call of List looks at: a page of few or none says where to go on."""
IDLE_POLLS_MAX = 10
"""A watched journal without news is read at up to this multiple of the poll interval; the owner's news come at once."""


class SearchServicer(rpc.SearchServiceServicer):
    """Every method reads the store, so any replica answers for any search."""

    def __init__(
        self, ports: Ports, submissions: Submissions, rows: Index, pools: Pools, news: News, settings: Settings
    ) -> None:
        self._ports, self._submissions, self._index, self._pools = ports, submissions, rows, pools
        self._news, self._settings = news, settings

    def servicer(self) -> Servicer:
        """For the runtime's server."""
        return Servicer(
            name=pb.DESCRIPTOR.services_by_name["SearchService"].full_name,
            add=lambda server: rpc.add_SearchServiceServicer_to_server(self, server),
        )

    async def Submit(self, request: pb.SubmitRequest, context: Context) -> pb.SubmitResponse:
        """See the proto file."""
        fingerprint = ids.content_hash(request.SerializeToString(deterministic=True))
        search, source = await self._asked(request)
        await self._ports.store.blobs.put(source)
        request_id = request.client_request_id or secrets.token_hex(16)
        search_id, created = await self._submissions.submit(search, request_id=request_id, fingerprint=fingerprint)
        return pb.SubmitResponse(search_id=search_id, created=created)

    async def Get(self, request: pb.GetRequest, context: Context) -> pb.GetResponse:
        """See the proto file."""
        row = await self._row(request.search_id)
        found = messages.search(row)
        if found.phase in ("submitted", "searching") and not await self._pools.slots(found.chip):
            found.detail = found.detail or f"no worker of pool `{found.chip}` has announced itself"
        return pb.GetResponse(search=found)

    async def List(self, request: pb.ListRequest, context: Context) -> pb.ListResponse:
        """See the proto file."""
        if request.phase not in PHASES:
            raise UserError(f"is {request.phase!r}", where="phase", hint=f"one of: {', '.join(PHASES[1:])}")
        size = paging.size(request.page_size, default=50, most=500)
        page: list[pb.Search] = []
        last, looked_at = "", 0
        async for key, row in self._index.rows(after=paging.key(request.page_token)):
            if len(page) == size or looked_at == ROWS_PER_CALL_MAX:
                return pb.ListResponse(searches=page, next_page_token=paging.token(last))
            last, looked_at = key, looked_at + 1
            found = messages.search(row)
            if request.phase in ("", found.phase) and request.chip in ("", found.chip):
                page.append(found)
        return pb.ListResponse(searches=page)

    async def Watch(self, request: pb.WatchRequest, context: Context) -> AsyncIterator[pb.WatchResponse]:
        """See the proto file."""
        if request.from_seq < 0:
            raise UserError(f"is {request.from_seq}", where="from_seq", hint="0 begins at the beginning")
        await self._must_exist(request.search_id)
        async for entry in self._tail(request.search_id, request.from_seq):
            yield messages.watched(entry)

    async def Cancel(self, request: pb.CancelRequest, context: Context) -> pb.CancelResponse:
        """See the proto file."""
        await self._must_exist(request.search_id)
        await self._submissions.cancel(request.search_id, request.reason or "asked by a client")
        return pb.CancelResponse()

    async def Resume(self, request: pb.ResumeRequest, context: Context) -> pb.ResumeResponse:
        """See the proto file."""
        tree, length = await self._rebuilt(request.search_id)
        if tree is None:
            await self._submitted(request.search_id)
        if tree is None or not tree.paused or tree.finished:
            hint = f"`kernelevolve get {request.search_id}` shows how it stands"
            raise UserError("is not paused", where=f"search {request.search_id}", hint=hint)
        await self._submissions.resume(request.search_id, messages.model_budget(request), journal_length=length)
        return pb.ResumeResponse()

    async def GetTree(self, request: pb.GetTreeRequest, context: Context) -> pb.GetTreeResponse:
        """See the proto file."""
        size = paging.size(request.page_size, default=200, most=1000)
        tree = await self._tree(request.search_id)
        nodes = sorted(tree.nodes.values(), key=lambda node: (-node.score_ppm, node.birth))
        after = paging.key(request.page_token)
        begin = next((n for n, node in enumerate(nodes, start=1) if node.candidate_id == after), 0)
        page = nodes[begin : begin + size]
        more = begin + size < len(nodes)
        return pb.GetTreeResponse(
            nodes=[messages.node(node) for node in page],
            next_page_token=paging.token(page[-1].candidate_id) if more else "",
        )

    async def ExportLog(
        self,
        request: pb.ExportLogRequest,
        context: Context,
    ) -> AsyncIterator[pb.ExportLogResponse]:
        """See the proto file."""
        from_bus = request.source == pb.LOG_SOURCE_BUS
        source = export.from_bus if from_bus else export.from_journal
        exported = await source(self._ports, request.search_id)
        for chunk in exported.chunks(request.search_id):
            yield pb.ExportLogResponse(chunk=chunk)
        yield pb.ExportLogResponse(entries=len(exported.entries), entries_from_journal=exported.from_journal)

    async def ListPools(self, request: pb.ListPoolsRequest, context: Context) -> pb.ListPoolsResponse:
        """See the proto file."""
        return pb.ListPoolsResponse(
            pools=[
                pb.Pool(chip=pool.chip, workers=pool.workers, slots=pool.slots, draining=pool.draining)
                for pool in await self._pools.all()
            ]
        )

    async def _asked(self, request: pb.SubmitRequest) -> tuple[SearchStarted, bytes]:
        """The search that is asked for, without its id, and the operator's text. Raises ``UserError``."""
        spec = operators.parse(request.operator.source, name=request.operator.name or "operator")
        sheet = chips.load(request.chip)
        wanted = SearchStarted(
            search_id="not chosen yet",
            operator=spec.ref,
            chip=sheet.id,
            policy=request.policy or "greedy",
            seed=request.seed,
            budget=messages.budget(request),
            languages=sheet.languages,
            policy_parameters=messages.parameters(request),
            threads=request.threads or 1,
            baseline=request.baseline or "best",
            candidates_per_expansion=request.candidates_per_expansion or CANDIDATES_PER_EXPANSION,
            expansions_in_flight=request.expansions_in_flight or 1,
            priority=request.priority,
            at_ns=self._ports.clock.now_ns(),
        )
        if not request.expansions_in_flight:
            wanted = replace(wanted, expansions_in_flight=await self._fair_depth(wanted))
        return wanted, spec.source.encode()

    async def _fair_depth(self, search: SearchStarted) -> int:
        """Expansions in flight that keep this search's share of the pool busy, as the pool is now."""
        slots = await self._pools.slots(search.chip)
        searches = await self._submissions.open_count() + 1
        depth = -(-slots // (searches * search.candidates_per_expansion))
        return max(EXPANSIONS_MIN, min(EXPANSIONS_MAX, depth))

    async def _row(self, search_id: str) -> dict[str, object]:
        """The index's row of ``search_id``, made from its journal or its submission. Raises ``NotFound``."""
        tree, length = await self._rebuilt(search_id)
        return index.row(tree, length) if tree else index.waiting_row(await self._submitted(search_id))

    async def _submitted(self, search_id: str) -> SearchStarted:
        started = await self._submissions.known(search_id)
        if started is None:
            raise _unknown(search_id)
        return started

    async def _must_exist(self, search_id: str) -> None:
        if await self._submissions.known(search_id) is not None:
            return
        async for _ in self._ports.store.journal.read(search_id):
            return
        raise _unknown(search_id)

    async def _rebuilt(self, search_id: str) -> tuple[Tree | None, int]:
        """The tree and the length of a journal, which is never in memory as a whole."""
        tree: Tree | None = None
        length, digest = 0, ""
        async for entry in self._ports.store.journal.read(search_id):
            tree = replay.advance(tree, *replay.decoded(entry, length, digest))
            length, digest = length + 1, entry.digest
        return tree, length

    async def _tree(self, search_id: str) -> Tree:
        tree, _ = await self._rebuilt(search_id)
        if tree is None:
            await self._submitted(search_id)
            raise NotFound("has not begun", where=f"search {search_id}", hint="`kernelevolve get` shows why")
        return tree

    async def _tail(self, search_id: str, position: int) -> AsyncIterator[JournalEntry]:
        """Entries from ``position`` on as they are written, up to the one on which the search finished."""
        idle = 0
        if position and await self._finished_before(search_id, position):
            return
        with self._news.of(search_id) as watcher:
            while True:
                before = position
                async for entry in self._ports.store.journal.read(search_id, position):
                    yield entry
                    position = entry.seq + 1
                    if messages.ends(entry):
                        return
                idle = 1 if position > before else min(idle + 1, IDLE_POLLS_MAX)
                await watcher.wait(idle * self._settings.watch_poll_s)

    async def _finished_before(self, search_id: str, position: int) -> bool:
        async for entry in self._ports.store.journal.read(search_id):
            if entry.seq >= position:
                break
            if messages.ends(entry):
                return True
        return False


def _unknown(search_id: str) -> NotFound:
    return NotFound("is not known", where=f"search {search_id}", hint="`kernelevolve list` shows the searches")
