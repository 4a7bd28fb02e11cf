"""``decide(tree, envelope) -> (tree, commands)``: every decision of a search, in one function (pure).

No clock (times come from facts), no randomness but ``ids.stream``, no sets, every sort ends in an id, every id is
derived from its cause. Called twice with equal arguments it returns equal results, in any process, for ever; that is
what replay compares.
"""

from __future__ import annotations

from dataclasses import replace

from search_svc import finale, opening, policies, pruners, requests
from search_svc.apply import apply, start
from search_svc.policies.policy import Ask
from search_svc.tree import Stage, Tree
from shared import envelopes, ids
from shared.errors import Poison, UserError
from shared.events import (
    CandidateProduced,
    Envelope,
    EvaluationCompleted,
    Event,
    NodePruned,
    Purpose,
    SearchForked,
    SearchPaused,
    SearchStarted,
)

SOURCE = "/search"
LOGIC_VERSIONS = (1, requests.SEEDED_BY_ORDER)
"""Versions of decision logic this code can still run; see ``SearchStarted.logic_version``."""


def decide(tree: Tree | None, envelope: Envelope) -> tuple[Tree, tuple[Envelope, ...]]:
    """What ``envelope`` means for the search and what is to be done about it.

    ``tree`` is None before SearchStarted. Commands are events in order of publication.

    Raises:
        Poison: a fact of a search that never started, or an event no search knows.
        UserError: a policy or parameter that cannot be built, or a logic version from the future;
            ``service.submit`` refuses those beforehand.
    """
    event = envelope.event
    if tree is None:
        if not isinstance(event, SearchStarted):
            raise Poison(f"{type(event).__name__} for a search that never started")
        if event.logic_version not in LOGIC_VERSIONS:
            raise UserError(f"needs decision logic version {event.logic_version}", where=f"search {event.search_id}")
        policies.build(event.policy, event.policy_parameters)
        tree = start(event)
    else:
        try:
            tree = apply(tree, event)
        except TypeError as error:
            raise Poison(str(error)) from error
    turn = _Turn(tree, envelope)
    if not tree.finished:
        _respond(turn)
    return turn.tree, tuple(turn.commands)


class _Turn:
    """One call's working state: the tree as commands are issued, and the commands."""

    def __init__(self, tree: Tree, cause: Envelope) -> None:
        self.tree, self.cause = tree, cause
        self.commands: list[Envelope] = []

    def issue(self, event: Event) -> None:
        self.tree = apply(self.tree, event)
        search_id = self.tree.search.search_id
        self.commands.append(_command(event, self.cause, len(self.commands), search_id))


def _respond(turn: _Turn) -> None:
    event = turn.cause.event
    if isinstance(event, SearchForked):
        _reissue(turn, event)
    if isinstance(event, CandidateProduced | EvaluationCompleted):
        _request_verdict(turn, event.candidate_id)
    if not turn.tree.limit:
        _prune(turn)
    if not turn.tree.limit:
        _pause(turn) if turn.tree.halted[0] else _expand(turn)
    if turn.tree.limit and (last := finale.step(turn.tree)):
        turn.issue(last)


def _request_verdict(turn: _Turn, candidate_id: str) -> None:
    """A pending node without a request gets one: the first, or the next after a measurement that did not count."""
    node = turn.tree.nodes.get(candidate_id)
    if node is None or node.stage is not Stage.PENDING:
        return
    if any(request.candidate_id == candidate_id for request in turn.tree.in_flight.values()):
        return
    turn.issue(requests.evaluation(turn.tree, node, Purpose.SEARCH, attempt=node.attempt + 1))


def _prune(turn: _Turn) -> None:
    for node, rule, detail in pruners.closed(turn.tree):
        search_id = turn.tree.search.search_id
        turn.issue(NodePruned(search_id=search_id, candidate_id=node.candidate_id, rule=rule, detail=detail))


def _pause(turn: _Turn) -> None:
    """A halted search finishes what is running; what comes then says that it waits."""
    tree = turn.tree
    if tree.paused or tree.running:
        return
    code, detail = tree.halted
    search_id = tree.search.search_id
    turn.issue(SearchPaused(search_id=search_id, code=code, detail=detail, evaluations=tree.charged))


def _expand(turn: _Turn) -> None:
    """Fill the free places in flight, never asking for more candidates than evaluations are left."""
    search = turn.tree.search
    busy = turn.tree.open_slots + turn.tree.pending
    free = search.expansions_in_flight * search.candidates_per_expansion - busy
    for n, ask in enumerate(_asks(turn.tree, free // search.candidates_per_expansion)):
        count = min(ask.count or search.candidates_per_expansion, turn.tree.remaining)
        if count <= 0:
            return
        expansion_id = ids.derive(turn.cause.id, "expansion", n)
        turn.issue(requests.expansion(turn.tree, ask, expansion_id, count))


def _asks(tree: Tree, n: int) -> tuple[Ask, ...]:
    if n <= 0 or tree.remaining <= 0:
        return ()
    first = opening.asks(tree, n)
    if len(first) == n or not any(not node.pruned for node in tree.passed()):
        return first
    policy = policies.build(tree.search.policy, tree.search.policy_parameters)
    return (*first, *policy.ask(tree, n - len(first)))


def _reissue(turn: _Turn, event: SearchForked) -> None:
    """Ask again, under the fork's name and the same ids, for what the prefix had asked and not been told."""
    for expansion in turn.tree.expansions.values():
        if expansion.open:
            turn.issue(replace(expansion.request, search_id=event.search_id))
    for request in turn.tree.in_flight.values():
        turn.issue(replace(request, search_id=event.search_id))


def _command(event: Event, cause: Envelope, n: int, search_id: str) -> Envelope:
    """``event`` as the ``n``-th command of ``cause``, whose time it takes: nothing here has a clock."""
    return Envelope(
        id=ids.derive(cause.id, type(event).__name__, n),
        event=event,
        source=SOURCE,
        subject=envelopes.subject_of(event),
        partition_key=envelopes.key_of(event),
        causation_id=cause.id,
        correlation_id=search_id,
        time_ns=cause.time_ns,
        traceparent=cause.traceparent,
    )
