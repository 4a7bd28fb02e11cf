"""One run: searches are submitted, faults happen, every search ends, every log is audited."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cli.client import KernelEvolveClient
from shared import kelog
from shared.patience import patiently
from shared.store import JournalEntry
from tests.chaos.audit import Audit, audit
from tests.chaos.faults import CHIP, Fault, Kind
from tests.chaos.system import FENCED
from tests.chaos.wishes import Wish

Tell = Callable[[str], None]

LOOK_S = 0.3
SUBMIT_EVERY_S = 0.5
PROGRESS_S = 90.0
"""A cluster that journals nothing for this long after a fault has not recovered."""


class Served(Protocol):
    """A system that serves searches, and can be hurt."""

    def client(self) -> AbstractAsyncContextManager[KernelEvolveClient]: ...

    async def hurt(self, fault: Fault) -> None:
        """Returns once the victim answers again."""

    def log_lines(self, words: str) -> int:
        """How often the evaluators' logs say ``words``."""

    def restarts(self) -> Mapping[str, int]:
        """Per process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injury:
    """A fault as it happened. ``at_s`` since the start of the run; ``unfinished`` searches there were then; ``ready_s``
    until the victim answered again; ``recovered_s`` until every search had news after that.
    """

    fault: Fault
    at_s: float
    unfinished: int
    ready_s: float
    recovered_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of it. ``audits`` in the order of the wishes."""

    injuries: tuple[Injury, ...]
    audits: tuple[Audit, ...]
    seconds: float
    fenced: int
    restarts: Mapping[str, int]

    @property
    def problems(self) -> list[str]:
        return [f"search {audit.search_id}: {problem}" for audit in self.audits for problem in audit.problems]

    @property
    def verdicts(self) -> Counter[str]:
        return sum((audit.verdicts for audit in self.audits), Counter())


async def play(
    system: Served,
    wishes: Sequence[Wish],
    faults: Sequence[Fault],
    *,
    within_s: float,
    tell: Tell = lambda _: None,
    settled: bool = True,
) -> Run:
    """Run ``wishes`` while ``faults`` happen, each once the cluster has recovered from the one before, or, not
    ``settled``, once its victim answers again.

    Raises:
        TimeoutError: some search did not end ``within_s`` of the last fault.
    """
    began_s = time.monotonic()
    async with system.client() as client:
        async with asyncio.TaskGroup() as group:
            submitting = group.create_task(submit(client, wishes))
            hurting = group.create_task(_hurt_all(system, client, faults, began_s, tell, settled))
        ids, injuries = submitting.result(), hurting.result()
        await ended(client, ids, within_s, tell)
        seconds = time.monotonic() - began_s
        await _check_again(client, wishes, ids)
        audits = [await _audit(client, search_id) for search_id in ids]
    return Run(
        injuries=tuple(injuries),
        audits=tuple(audits),
        seconds=seconds,
        fenced=system.log_lines(FENCED),
        restarts=system.restarts(),
    )


async def submit(client: KernelEvolveClient, wishes: Sequence[Wish]) -> list[str]:
    ids = []
    for wish in wishes:
        ids.append(await patiently(lambda wish=wish: submitted(client, wish), "submit"))
        await asyncio.sleep(SUBMIT_EVERY_S)
    return ids


async def submitted(client: KernelEvolveClient, wish: Wish) -> str:
    answer = await client.submit(
        wish.operator,
        wish.source,
        chip=CHIP,
        budget=wish.budget,
        policy=wish.policy,
        seed=wish.seed,
        request_id=wish.request_id,
        **wish.depth,
    )
    return answer.search_id


async def _check_again(client: KernelEvolveClient, wishes: Sequence[Wish], ids: Sequence[str]) -> None:
    """A wish that is made again is the search it was."""
    again = [await submitted(client, wish) for wish in wishes]
    assert again == list(ids)


async def _hurt_all(
    system: Served, client: KernelEvolveClient, faults: Sequence[Fault], began_s: float, tell: Tell, settled: bool
) -> list[Injury]:
    """One after the other, but for kernels that hang a worker: that takes long, and happens beside everything else."""
    injuries = []
    async with asyncio.TaskGroup() as group:
        for fault in faults:
            await asyncio.sleep(fault.after_s)
            hurting = group.create_task(_hurt(system, client, fault, began_s, tell, settled))
            injuries.append(hurting)
            if fault.kind is not Kind.HANG:
                await asyncio.wait({hurting})
    return [injury.result() for injury in injuries]


async def _hurt(
    system: Served, client: KernelEvolveClient, fault: Fault, began_s: float, tell: Tell, settled: bool
) -> Injury:
    at_s = time.monotonic()
    unfinished = await _unfinished(client)
    tell(f"{at_s - began_s:6.1f} s  {fault.kind} {fault.victim} {fault.beside}")
    await system.hurt(fault)
    ready_s = time.monotonic() - at_s
    if settled:
        await _news(client)
    recovered_s = time.monotonic() - at_s
    tell(f"          {fault.victim}: ready after {ready_s:.1f} s, going on after {recovered_s:.1f} s")
    return Injury(
        fault=fault, at_s=at_s - began_s, unfinished=len(unfinished), ready_s=ready_s, recovered_s=recovered_s
    )


async def _news(client: KernelEvolveClient) -> None:
    """Until every search that has not ended has one fact more than now, or has ended.

    Raises:
        TimeoutError: that takes longer than ``PROGRESS_S``.
    """
    async with asyncio.timeout(PROGRESS_S):
        waiting = await _unfinished(client)
        while waiting:
            await asyncio.sleep(LOOK_S)
            now = await _unfinished(client)
            waiting = {each: length for each, length in waiting.items() if now.get(each) == length}


async def _unfinished(client: KernelEvolveClient) -> dict[str, int]:
    """Searches that have not ended, and how many facts each has."""

    async def look() -> dict[str, int]:
        return {row.search_id: row.journal_length async for row in client.list() if row.phase != "finished"}

    return await patiently(look, "list")


async def ended(client: KernelEvolveClient, ids: Sequence[str], within_s: float, tell: Tell) -> None:
    deadline_s = time.monotonic() + within_s
    told_s = 0.0
    while True:
        unfinished = await _unfinished(client)
        if not unfinished:
            return
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{len(unfinished)} of {len(ids)} searches did not end: {', '.join(unfinished)}")
        if time.monotonic() - told_s > 10:
            told_s = time.monotonic()
            tell(f"          {len(ids) - len(unfinished)} of {len(ids)} searches ended")
        await asyncio.sleep(LOOK_S)


async def _audit(client: KernelEvolveClient, search_id: str) -> Audit:
    return audit(search_id, await _exported(client, search_id, "journal"), await _exported(client, search_id, "bus"))


async def _exported(client: KernelEvolveClient, search_id: str, source: str) -> tuple[JournalEntry, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "search.kelog")
        await client.export_log(search_id, path, source=source)
        return kelog.read(path).entries
