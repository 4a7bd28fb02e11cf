"""Looking after searches that stand still.

Everything a search waits for is on its way in some topic. A broker that lost its data, a worker that was killed between
two lines, a submission whose publisher died: all look the same from here, as a search without news. What it waits for
is then published again under the ids it had. A worker that still has it in hand recognises the id, one that had
finished it answers from memory, and a search that had the answer ignores it: asking again can cost time, never truth.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from search_svc.owner import Owner, SearchBroken
from search_svc.settings import Settings
from search_svc.submissions import Submissions
from shared.cache import Leases
from shared.clock import SECOND_NS, Clock
from shared.errors import Poison, Unavailable
from shared.ports import Ports
from shared.store import Journal

LEASE = "search/sweeper"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    """One open search: how long its journal was, since when, and how often it was asked about since."""

    length: int
    since_ns: int
    asked: int = 0


class Sweeper:
    """Any replica may run one; a lease lets one at a time do the work, and two would do no harm."""

    def __init__(self, ports: Ports, owner: Owner, submissions: Submissions, settings: Settings, *, name: str) -> None:
        self._journal: Journal = ports.store.journal
        self._leases: Leases = ports.cache.leases
        self._clock: Clock = ports.clock
        self._owner, self._submissions, self._settings, self._name = owner, submissions, settings, name
        self._watched: dict[str, _Watched] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Sweep until told to stop; a dependency that is gone only postpones the next time."""
        while not stop.is_set():
            try:
                if await self._chosen():
                    await self.sweep(stop)
            except Unavailable as error:
                log.warning("sweep postponed: %s", error)
            try:
                await asyncio.wait_for(stop.wait(), self._settings.sweep_s)
            except TimeoutError:
                continue

    async def sweep(self, stop: asyncio.Event) -> None:
        """Look at every search that has not ended, once; at no more of them when told to stop.

        Raises:
            Unavailable: a dependency is gone.
        """
        open_searches = await self._submissions.open_searches()
        for search_id in open_searches:
            if stop.is_set():
                return
            await self._look_at(search_id)
        gone = set(self._watched).difference(open_searches)
        for search_id in gone:
            del self._watched[search_id]

    async def _chosen(self) -> bool:
        try:
            return await self._leases.acquire(LEASE, self._name, 3 * self._settings.sweep_s) is not None
        except Unavailable:
            return True

    async def _look_at(self, search_id: str) -> None:
        now_ns = self._clock.monotonic_ns()
        watched = self._watched.get(search_id)
        known = watched.length if watched else 0
        length = known
        async for entry in self._journal.read(search_id, known):
            length = entry.seq + 1
        if watched is None or length != known:
            self._watched[search_id] = watched = _Watched(length, now_ns)
            if known or length:
                return
        if now_ns - watched.since_ns >= self._pause_ns(watched.asked):
            try:
                await self._ask_again(search_id, watched)
            except (SearchBroken, Poison) as error:  # a wish that the bus refuses is as bad
                log.error("%s; nobody can go on with it", error)  # noqa: TRY400 - the message is the story
            # Counted once it has been asked: what a broker that is away did not hear is due again at once.
            watched.asked, watched.since_ns = watched.asked + 1, now_ns

    async def _ask_again(self, search_id: str, watched: _Watched) -> None:
        tree = await self._owner.ask_again(search_id)
        if tree is not None and tree.finished:
            await self._submissions.ended(search_id)
            return
        if (watched.asked or tree is None) and not (tree and tree.paused):
            log.info("search %s: no news, asked again (%d)", search_id, watched.asked + 1)
        await self._submissions.repeat(search_id, begun=tree is not None)

    def _pause_ns(self, asked: int) -> int:
        pause_s = min(self._settings.ask_again_max_s, self._settings.ask_again_after_s * 2.0**asked)
        return round(pause_s * SECOND_NS)
