"""The port's subscription: a member of a group that joins again when it has to."""

from __future__ import annotations

import asyncio
import logging
from typing import Self

from shared import topics
from shared.bus import Delivery
from shared.bus.kafka_connection import Connection
from shared.bus.kafka_member import Member
from shared.errors import Fatal, Unavailable

log = logging.getLogger(__name__)

SLICE_S = 0.5
"""Longest single request for records; how late a closing or a change of the topics is noticed."""


class KafkaSubscription:
    """See the port for what it promises."""

    def __init__(self, connection: Connection, topic: topics.Topic, group: str, instance: str | None) -> None:
        self._connection, self._topic, self._group, self._instance = connection, topic, group, instance
        self._news = asyncio.Event()
        self._open = False
        self._paused = False
        self._member: Member | None = None
        self._joining: asyncio.Task[Member] | None = None
        self._farewell: asyncio.Task[None] | None = None
        self._gaps = 0

    @property
    def gaps(self) -> int:
        """Records missing in what was read since the subscription was made; see ``Positions.gaps``."""
        return self._gaps + (self._member.positions.gaps if self._member else 0)

    # --- open and closed ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Joins the group. Raises ``Unavailable`` while there is no broker to join at."""
        if self._open:
            raise Fatal(f"{self._group} on {self._topic.name} is open already")
        self._connection.check_open()
        self._paused = False
        self._open = True
        self._connection.readers.add(self)
        try:
            await asyncio.wait({self._join()}, timeout=self._connection.settings.request_timeout_ms / 1000)
            joined = self._joined() is not None
        except BaseException:
            await self.close()
            raise
        if not joined:
            await self.close()
            raise Unavailable(f"join {self._group} on {self._topic.name}: no answer")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the group. Closing what is closed changes nothing: a bus closes what its readers left open."""
        self._open = False
        self.wake()
        self._connection.readers.discard(self)
        joining, self._joining = self._joining, None
        if joining is not None:
            joining.cancel()
            await asyncio.wait({joining})
            if not joining.cancelled() and joining.exception() is None:
                self._member = joining.result()
        self._discard()
        if self._farewell is not None:
            await asyncio.wait({self._farewell})

    def _check_open(self) -> None:
        if not self._open:
            raise Fatal(f"{self._group} on {self._topic.name} is not open")
        self._connection.check_open()

    # --- reading ------------------------------------------------------------------------------------------------------

    async def poll(self, wait_s: float) -> Delivery | None:
        """See the port. Raises ``Fatal`` on a subscription or bus that is closed."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + wait_s
        await asyncio.sleep(0)  # a full buffer must not starve the rest of the loop
        late = asked = False
        while True:
            self._news.clear()
            self._check_open()
            self._connection.check_reachable()
            member = self._current()
            delivery = self._take(member)
            if delivery is not None or late:
                return delivery
            if member is not None and not (self._paused and asked):
                member.ask(paused=self._paused, wait_s=min(SLICE_S, max(0.0, deadline_s - loop.time())))
                asked = True
            late = not await self._wait_for_news(deadline_s)

    def _take(self, member: Member | None) -> Delivery | None:
        try:
            return member.take(paused=self._paused) if member else None
        except Unavailable:
            self._discard()
            raise

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self.wake()

    async def commit(self, delivery: Delivery) -> bool:
        """See the port. Raises ``Fatal`` when the subscription is closed."""
        self._check_open()
        member = self._member
        return member is not None and await member.commit(delivery)

    def lag(self) -> int:
        """See the port. Raises ``Fatal`` when the subscription is closed."""
        self._check_open()
        return self._member.lag() if self._member else 0

    def wake(self) -> None:
        """Make a waiting ``poll`` look again."""
        self._news.set()

    async def _wait_for_news(self, deadline_s: float) -> bool:
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    # --- membership ---------------------------------------------------------------------------------------------------

    def _current(self) -> Member | None:
        """The member, unless it is still joining, which this starts when due. Raises what joining raised."""
        member = self._joined()
        if member is not None and member.outlived:
            log.warning("%s on %s: the topic is a new one, joining again", self._group, self._topic.name)
            self._discard()
            member = None
        if member is None:
            self._join()
        return member

    def _join(self) -> asyncio.Task[Member]:
        """The attempt to join that is in progress; a new one if there is none."""
        if self._joining is None:
            self._joining = asyncio.create_task(self._join_after_farewell())
            self._joining.add_done_callback(lambda _: self.wake())
        return self._joining

    async def _join_after_farewell(self) -> Member:
        if self._farewell is not None:
            await asyncio.wait({self._farewell})
        return await Member.joined(self._connection, self._topic, self._group, self._instance, self.wake)

    def _joined(self) -> Member | None:
        """The member, if it has joined by now. Raises what joining raised."""
        if self._joining is not None and self._joining.done():
            joining, self._joining = self._joining, None
            self._member = joining.result()
        return self._member

    def _discard(self) -> None:
        member, self._member = self._member, None
        if member is not None:
            self._gaps += member.positions.gaps
            self._farewell = self._connection.farewells.part(member.close())
