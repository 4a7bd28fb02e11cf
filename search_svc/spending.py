"""What a search has spent on models, and what each endpoint brought for it (pure).

Every answer counts, also one that brought nothing to evaluate. What was asked under one id is counted once, because
only the first answer to an index is taken.
"""

from __future__ import annotations

from dataclasses import replace

from search_svc import writers
from search_svc.tree import Node, Tree, put
from shared.events import CandidateProduced, CandidateRejected, EndpointRecord, ExpansionFailed, Spend, Usage
from shared.usage import UNKNOWN, by_a_model, shares, total
from shared.writers import filled_in


def spent(tree: Tree, event: CandidateProduced | CandidateRejected | ExpansionFailed) -> Tree:
    """``tree`` after the bill of one answer."""
    return replace(tree, spent=total(tree.spent, event.usage)) if by_a_model(event.usage) else tree


def fruitless(tree: Tree, event: CandidateProduced | CandidateRejected) -> Tree:
    """``tree`` after an answer of an endpoint that brought nothing to evaluate."""
    return _settle(tree, event.context.endpoint, event.usage, gain_micro=0)


def failed(tree: Tree, event: ExpansionFailed) -> Tree:
    """``tree`` after an expansion for which endpoints were asked in vain."""
    return _settle(tree, "", event.usage, gain_micro=0)


def judged(tree: Tree, node: Node) -> Tree:
    """``tree`` after the verdict on ``node``; what a schedule wrote in a model's place is no gain of the endpoint's."""
    gain = 0 if filled_in(node.move) else writers.gain_micro(tree, node)
    return _settle(tree, node.context.endpoint, node.usage, gain_micro=gain)


def shown(tree: Tree) -> tuple[EndpointRecord, ...]:
    """What a request carries: the endpoints that were asked, by name."""
    return tuple(tree.endpoints[name] for name in sorted(tree.endpoints))


def _settle(tree: Tree, endpoint: str, usage: Usage, *, gain_micro: int) -> Tree:
    """What each endpoint took is its own cost, whoever answered; the gain is that of ``endpoint``, which did.

    One that was passed over and took nothing is not held to have tried.
    """
    records = tree.endpoints
    for share in shares(usage, endpoint):
        answered = share.endpoint == endpoint
        if share.endpoint and (answered or share.tokens):
            old = records.get(share.endpoint) or EndpointRecord(endpoint=share.endpoint)
            new = _added(old, share, gain_micro if answered else 0)
            records = put(records, share.endpoint, new)
    return replace(tree, endpoints=records)


def _added(old: EndpointRecord, share: Spend, gain_micro: int) -> EndpointRecord:
    unknown = UNKNOWN in (old.cost_micro, share.cost_micro)
    return replace(
        old,
        asked=old.asked + 1,
        gains=old.gains + (gain_micro > 0),
        gain_micro=old.gain_micro + gain_micro,
        tokens=old.tokens + share.tokens,
        cost_micro=UNKNOWN if unknown else old.cost_micro + share.cost_micro,
    )
