"""Submitting and cancelling so that nothing is lost between the caller and the journal.

A wish is stored before it is published. The store outlives every broker: until a search has ended, its wishes are kept
under its id, each in a document of its own, and the sweeper publishes them again when the journal shows no trace of
them.
"""

from __future__ import annotations

from dataclasses import replace

from search_svc.check import check, short
from search_svc.index import PAUSED, Index
from search_svc.service import SUBMITTER
from shared import envelopes, ids, tracing, wire
from shared.clock import SECOND_NS
from shared.errors import AlreadyExists
from shared.events import Envelope, ModelBudget, SearchCancelled, SearchResumed, SearchStarted
from shared.ports import Ports

OPEN = "search.open"
"""search id -> the envelope of its start, until it has ended."""
WISHES = "search.wishes"
"""``<search id>/<resumed or cancelled>`` -> the envelope of the latest such wish, until it has ended."""
RESUMED, CANCELLED = "resumed", "cancelled"
REQUESTS = "search.requests"
"""client request id -> the search it became, for ever: a retry never starts a second one."""
COUNTED_EVERY_NS = 5 * SECOND_NS
"""How old a count of the open searches may be: thousands of submissions do not each read thousands of wishes."""


class Submissions:
    """The way in."""

    def __init__(self, ports: Ports, index: Index) -> None:
        self._bus, self._clock = ports.bus, ports.clock
        self._documents, self._journal = ports.store.documents, ports.store.journal
        self._index = index
        self._open, self._counted_ns = 0, -COUNTED_EVERY_NS

    async def submit(self, search: SearchStarted, *, request_id: str, fingerprint: str) -> tuple[str, bool]:
        """The id of the search that ``search`` became, derived from ``request_id``, and whether it is new.

        ``fingerprint`` stands for what the caller asked, before anything was filled in: a retry has the same one.

        Raises:
            UserError: a limit or parameter that no search can run with.
            AlreadyExists: ``request_id`` stands for another search.
        """
        check(search)
        short(request_id, "client_request_id")
        search = replace(search, search_id=ids.derive("search", request_id))
        envelope = self._envelope(search, search.search_id)
        stored = {"fingerprint": fingerprint, "started": wire.to_json(envelope)}
        before = await self._documents.create(REQUESTS, request_id, stored)
        if before is not None:
            if before["fingerprint"] != fingerprint:
                raise AlreadyExists("stands for another search", where=f"client_request_id {request_id}")
            envelope = wire.from_json(_object(before["started"]))
        await self._ensure(envelope)
        return search.search_id, before is None

    async def cancel(self, search_id: str, reason: str) -> None:
        """Ask a search to end now. One that has ended stays as it is. Raises ``UserError`` for too long a reason."""
        short(reason, "reason")
        event = SearchCancelled(search_id=search_id, reason=reason, at_ns=self._clock.now_ns())
        await self._wish(search_id, CANCELLED, self._envelope(event, search_id))

    async def resume(self, search_id: str, model: ModelBudget, *, journal_length: int) -> None:
        """Ask a search that paused on entry ``journal_length`` - 1 to go on. Asking the same twice is harmless; asked
        again with another limit, the later one holds.
        """
        event = SearchResumed(search_id=search_id, at_ns=self._clock.now_ns(), model=model)
        cause_id = ids.derive(search_id, "pause", journal_length, model.tokens, model.cost_micro)
        await self._wish(search_id, RESUMED, self._envelope(event, cause_id))

    async def _wish(self, search_id: str, kind: str, envelope: Envelope) -> None:
        if await self._documents.get(OPEN, search_id) is None:
            return
        await self._documents.put(WISHES, f"{search_id}/{kind}", wire.to_json(envelope))
        await self._publish(envelope)

    async def repeat(self, search_id: str, *, begun: bool) -> None:
        """Publish again what was wished of a search that has not ended: its start unless it has begun, that it goes on,
        its end.
        """
        open_ = await self._documents.get(OPEN, search_id)
        if open_ is None:
            return
        if not begun:
            await self._publish(wire.from_json(_object(open_["started"])))
        for kind in (RESUMED, CANCELLED):
            wish = await self._documents.get(WISHES, f"{search_id}/{kind}")
            if wish is not None:
                await self._publish(wire.from_json(wish))

    async def open_searches(self) -> list[str]:
        """Ids of the searches that have not ended."""
        return [search_id async for search_id, _ in self._documents.scan(OPEN)]

    async def open_count(self) -> int:
        """About how many searches are at work: as counted lately, with those submitted here since. Paused ones wait for
        somebody, and want nothing meanwhile.
        """
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._counted_ns >= COUNTED_EVERY_NS:
            paused = {search_id async for search_id, _ in self._documents.scan(PAUSED)}
            self._open, self._counted_ns = len({*await self.open_searches()} - paused), now_ns
        return self._open

    async def ended(self, search_id: str) -> None:
        """Forget the wishes of a search that has ended."""
        for kind in (RESUMED, CANCELLED):
            await self._documents.delete(WISHES, f"{search_id}/{kind}")
        await self._documents.delete(OPEN, search_id)

    async def known(self, search_id: str) -> SearchStarted | None:
        """The wish of a search that has not ended; None for any other."""
        open_ = await self._documents.get(OPEN, search_id)
        if open_ is None:
            return None
        event = wire.from_json(_object(open_["started"])).event
        assert isinstance(event, SearchStarted)
        return event

    async def _ensure(self, envelope: Envelope) -> None:
        search = envelope.event
        assert isinstance(search, SearchStarted)
        if await self._journalled(search.search_id):
            return
        await self._index.begin(search)
        before = await self._documents.create(OPEN, search.search_id, {"started": wire.to_json(envelope)})
        self._open += before is None
        await self._publish(envelope)

    async def _journalled(self, search_id: str) -> bool:
        async for _ in self._journal.read(search_id):
            return True
        return False

    def _envelope(self, event: SearchStarted | SearchResumed | SearchCancelled, cause_id: str) -> Envelope:
        return envelopes.envelope(
            event,
            cause_id=cause_id,
            source=SUBMITTER,
            clock=self._clock,
            traceparent=tracing.current_traceparent(),
        )

    async def _publish(self, envelope: Envelope) -> None:
        await self._bus.publish(envelopes.topic_of(envelope.event), wire.encode(envelope))


def _object(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value
