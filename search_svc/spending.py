"""What a search has spent on models, and what each endpoint brought for it (pure).

Every answer counts, also one that brought nothing to evaluate. What was asked under one id is counted once, because
only the first answer to an index is taken.
"""

from __future__ import annotations

from dataclasses import replace

from search_svc import writers
from search_svc.tree import Node, Tree, put
from shared.events import CandidateProduced, CandidateRejected, Context, EndpointRecord, ExpansionFailed, Usage
from shared.usage import UNKNOWN, by_a_model, total
from shared.writers import filled_in


def spent(tree: Tree, event: CandidateProduced | CandidateRejected | ExpansionFailed) -> Tree:
    """``tree`` after the bill of one answer."""
    return replace(tree, spent=total(tree.spent, event.usage)) if by_a_model(event.usage) else tree


def fruitless(tree: Tree, event: CandidateProduced | CandidateRejected) -> Tree:
    """``tree`` after an answer of an endpoint that brought nothing to evaluate."""
    return _settle(tree, event.context, event.usage, gain_micro=0)


def judged(tree: Tree, node: Node) -> Tree:
    """``tree`` after the verdict on ``node``; what a schedule wrote in a model's place is no gain of the endpoint's."""
    gain = 0 if filled_in(node.move) else writers.gain_micro(tree, node)
    return _settle(tree, node.context, node.usage, gain_micro=gain)


def shown(tree: Tree) -> tuple[EndpointRecord, ...]:
    """What a request carries: the endpoints that were asked, by name."""
    return tuple(tree.endpoints[name] for name in sorted(tree.endpoints))


def _settle(tree: Tree, context: Context, usage: Usage, *, gain_micro: int) -> Tree:
    if not context.endpoint:
        return tree
    old = tree.endpoints.get(context.endpoint) or EndpointRecord(endpoint=context.endpoint)
    unknown = UNKNOWN in (old.cost_micro, usage.cost_micro)
    new = replace(
        old,
        asked=old.asked + 1,
        gains=old.gains + (gain_micro > 0),
        gain_micro=old.gain_micro + gain_micro,
        tokens=old.tokens + usage.input_tokens + usage.output_tokens,
        cost_micro=UNKNOWN if unknown else old.cost_micro + usage.cost_micro,
    )
    return replace(tree, endpoints=put(tree.endpoints, new.endpoint, new))
