"""The index of searches: one small document each, newest first, so that a list needs no journal.

The journal stays the record. A row is written after the facts it tells of, at most once a second while only counts
change, and by whoever owns the search. Whoever has written one looks whether the journal has gone on meanwhile, so that
a late row of a former owner is put right by its writer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from weakref import WeakKeyDictionary

from search_svc import projection
from search_svc.owner import Held
from search_svc.tree import Tree
from shared import json_codec
from shared.clock import SECOND_NS, Clock
from shared.errors import Conflict
from shared.events import SearchStarted
from shared.store import Store

COLLECTION = "search.index"
PAUSED = "search.paused"
"""Ids of searches that have paused and not gone on: they want nothing of a pool."""
LAST_NS = 10**20 - 1
WRITE_EVERY_NS = SECOND_NS


def key(search_id: str, at_ns: int) -> str:
    """Sorts later submissions first."""
    return f"{LAST_NS - at_ns:020d}-{search_id}"


def waiting_row(search: SearchStarted) -> dict[str, object]:
    """The row of a search that was submitted and not begun."""
    return {"search": json_codec.to_plain(search), "phase": "submitted", "journal_length": 0}


def row(tree: Tree, journal_length: int) -> dict[str, object]:
    """The row of a search that has a journal."""
    summary = projection.summarize(tree)
    best = projection.winner(tree)
    speedup = best.final.speedup(tree.search.baseline) if best and best.final else None
    return {
        "search": json_codec.to_plain(tree.search),
        "phase": summary.phase,
        "outcome": summary.outcome,
        "reason": summary.reason,
        "detail": summary.detail,
        "charged": summary.charged,
        "nodes": summary.nodes,
        "evaluating": summary.evaluating,
        "synthesizing": summary.synthesizing,
        "best_id": summary.best_id,
        "best_ppm": summary.best_score_ppm,
        "winner_id": summary.winner_id,
        "winner_ppm": projection.final_ppm(tree, best) if best else 0,
        "winner_low_ppm": speedup.low_ppm if speedup else 0,
        "winner_high_ppm": speedup.high_ppm if speedup else 0,
        "elapsed_ns": summary.elapsed_ns,
        "eta_ns": summary.eta_ns,
        "journal_length": journal_length,
        **_estimates(tree),
        "spent": json_codec.to_plain(summary.spent),
    }


def _estimates(tree: Tree) -> dict[str, object]:
    """What scores rest on; nothing where kernels are timed."""
    reference, best = tree.reference, projection.winner(tree) or tree.best
    if reference is None or best is None:
        return {}
    found = best.final or best.evaluation
    estimate = found.estimate if found else None
    return {
        "basis": reference.basis.value,
        "cost_unit": reference.unit,
        "reference_cost": reference.cost,
        "best_cost": estimate.cost if estimate else 0,
    }


class Index:
    """Keeps the rows of the searches this process owns up to date."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._documents, self._journal, self._clock = store.documents, store.journal, clock
        self._written: WeakKeyDictionary[Held, tuple[object, int]] = WeakKeyDictionary()

    async def note(self, held: Held) -> None:
        """Write the row of ``held``, unless it only counts on and was written a moment ago.

        Raises:
            Conflict: the journal has gone on meanwhile, and the row may have covered a newer one.
        """
        tree = held.tree
        if tree is None or held.cut_off_fork:
            return
        telling = (tree.limit, tree.best_id, tree.outcome, tree.paused)
        now_ns = self._clock.monotonic_ns()
        before, written_ns = self._written.get(held, (None, 0))
        if before == telling and now_ns - written_ns < WRITE_EVERY_NS:
            return
        await self._documents.put(COLLECTION, key(held.search_id, tree.search.at_ns), row(tree, held.length))
        if tree.paused and not tree.finished:
            await self._documents.put(PAUSED, held.search_id, {})
        elif before != telling:
            await self._documents.delete(PAUSED, held.search_id)
        async for entry in self._journal.read(held.search_id, held.length):
            raise Conflict(f"search {held.search_id}: entry {entry.seq} came while its row was written")
        if not tree.finished:
            self._written[held] = (telling, now_ns)

    async def begin(self, search: SearchStarted) -> None:
        """A row for a search that was only submitted; one that is there already stays."""
        await self._documents.create(COLLECTION, key(search.search_id, search.at_ns), waiting_row(search))

    def rows(self, after: str = "") -> AsyncIterator[tuple[str, Mapping[str, object]]]:
        """``(key, row)``, newest submission first, after the row ``after``."""
        return self._documents.scan(COLLECTION, after=after)
