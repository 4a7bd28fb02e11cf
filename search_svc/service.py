"""Composition of search_svc, and the ways in: submit, cancel, fork."""

from __future__ import annotations

from collections.abc import Sequence

from search_svc import replay
from search_svc.check import BASELINES, check
from search_svc.owner import NO_BUDGET, Owner
from search_svc.settings import Settings
from shared import envelopes, topics, tracing, wire
from shared.errors import Conflict, UserError
from shared.events import Entry, Envelope, ModelBudget, SearchCancelled, SearchStarted
from shared.ports import Ports
from shared.service import Service, Subscribe
from shared.store import Journal, JournalEntry

NAME = "search"
GROUP = "search"
SUBMITTER = "/submitter"
__all__ = ["BASELINES", "GROUP", "NAME", "NO_BUDGET", "SUBMITTER", "build", "cancel", "check", "fork", "submit"]


def build(ports: Ports, settings: Settings, *, resumed_with: ModelBudget = NO_BUDGET) -> Service:
    """The service over open ``ports``; searches that are taken up again may spend ``resumed_with`` on models."""
    owner = Owner(ports, settings, resumed_with=resumed_with)
    facts = Subscribe(topic=topics.FACTS, group=GROUP, handler=owner.on_fact, members=settings.members)
    return Service(name=NAME, subscriptions=(facts,), recover=owner.recover)


async def submit(ports: Ports, search: SearchStarted) -> Envelope:
    """Check and publish a search; submitting the same one twice is harmless.

    Raises:
        UserError: a limit or parameter that no search can run with.
    """
    check(search)
    with tracing.answering("submit", {}, search_id=search.search_id):
        envelope = envelopes.envelope(
            search,
            cause_id=search.search_id,
            source=SUBMITTER,
            clock=ports.clock,
            traceparent=tracing.current_traceparent(),
        )
        await ports.bus.publish(topics.FACTS, wire.encode(envelope))
    return envelope


async def cancel(ports: Ports, search_id: str, reason: str) -> Envelope:
    """Ask a search to end now; it finishes with outcome ``cancelled``."""
    event = SearchCancelled(search_id=search_id, reason=reason, at_ns=ports.clock.now_ns())
    envelope = envelopes.envelope(event, cause_id=search_id, source=SUBMITTER, clock=ports.clock)
    await ports.bus.publish(topics.FACTS, wire.encode(envelope))
    return envelope


async def fork(
    ports: Ports,
    entries: Sequence[JournalEntry],
    *,
    at_seq: int,
    search_id: str,
    policy: str,
    seed: int,
    parameters: tuple[Entry, ...] = (),
) -> Envelope:
    """Journal the first ``at_seq`` of ``entries`` as the history of a new search and set it going.

    Called again after a crash, with the same arguments, it finishes what it had begun: entries that stand already are
    left, and a SearchForked that came already is ignored. Until then nobody acts on the copied history.

    Raises:
        LogError: ``at_seq`` is not a position of the log.
        UserError: a bad policy, or ``search_id`` is taken.
    """
    now_ns = ports.clock.now_ns()
    prefix, envelope = replay.fork(
        entries, at_seq=at_seq, search_id=search_id, policy=policy, seed=seed, parameters=parameters, at_ns=now_ns
    )
    await _copy(ports.store.journal, prefix, search_id, begins_with=envelope)
    await ports.bus.publish(topics.FACTS, wire.encode(envelope))
    return envelope


async def _copy(journal: Journal, prefix: Sequence[JournalEntry], stream: str, *, begins_with: Envelope) -> None:
    """Append what of ``prefix`` is not in ``stream`` yet; ``begins_with`` is the fork's own first entry."""
    taken = UserError("is taken by another search", where=f"search {stream}")
    standing = [entry async for entry in journal.read(stream)]
    copied, further = standing[: len(prefix)], standing[len(prefix) :]
    own_history = standing and wire.unpack(standing[0].event).partition_key == stream
    begun_otherwise = further and further[0].event_id != begins_with.id
    if own_history or begun_otherwise or copied != list(prefix[: len(copied)]):
        raise taken
    for entry in prefix[len(copied) :]:
        try:
            await journal.append(stream, entry)
        except Conflict as error:
            raise taken from error
