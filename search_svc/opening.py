"""What every policy leaves to the search: first drafts, schedules of other chips, repairs while nothing works, fresh
blood in a stall (pure).
"""

from __future__ import annotations

from dataclasses import replace

from search_svc.policies.policy import Ask, improve, reasons
from search_svc.tree import Tree
from shared.events import Memory, Prior

STALLING_AFTER = 12
"""Verdicts without a new best after which a draft is tried beside the policy's choices."""

DRAFT_PERIOD = 6
"""Expansions between two drafts in one stall."""


def draft(memory: Memory, **numbers: str | int) -> Ask:
    """A candidate from nothing: with a clean mind, or knowing the drafts before it so as to differ from them."""
    return Ask(parent_ids=(), memory=memory, reasons=reasons(**numbers))


def asks(tree: Tree, n: int) -> tuple[Ask, ...]:
    """Up to ``n`` expansions that take precedence over the policy's; often none."""
    if priors := _untried(tree):
        return _seeding(tree, priors, n)
    if not any(not node.pruned for node in tree.passed()):
        return _until_something_works(tree, n)
    period, within = divmod(len(tree.expansions), DRAFT_PERIOD)
    if tree.root_open and tree.since_best >= STALLING_AFTER and within == 0:
        memory = Memory.SIBLINGS if period % 2 else Memory.CLEAN
        return (draft(memory, draft="stall", since_best=tree.since_best),)
    return ()


def _untried(tree: Tree) -> tuple[Prior, ...]:
    """Schedules of other chips that nobody was asked for yet."""
    return tree.search.priors[sum(len(expansion.request.priors) for expansion in tree.expansions.values()) :]


def _seeding(tree: Tree, priors: tuple[Prior, ...], n: int) -> tuple[Ask, ...]:
    """One draft of the search's own first: what is written from ``priors`` is compared with it. Then those, one
    candidate each, whatever the first draft came to. A small budget leaves room for them.
    """
    at_once = tree.search.candidates_per_expansion
    if not tree.expansions:
        first = draft(Memory.CLEAN, draft="before the schedules of other chips", drafts=0)
        return (replace(first, count=max(1, min(at_once, tree.remaining - len(priors)))),)
    if tree.running and not any(tree.passed()):
        return ()
    parts = [priors[start : start + at_once] for start in range(0, len(priors), at_once)]
    return tuple(
        replace(draft(Memory.CLEAN, draft="a schedule of another chip", priors=len(part)), count=len(part), priors=part)
        for part in parts[:n]
    )


def _until_something_works(tree: Tree, n: int) -> tuple[Ask, ...]:
    """Drafts and repairs in turn; a failed node is repaired before it is given up."""
    broken = sorted(
        (node for node in tree.expandable() if node.offspring.open == 0),
        key=lambda node: (node.offspring.expansions, -node.birth),
    )
    chosen: list[Ask] = []
    for turn in range(len(tree.expansions), len(tree.expansions) + n):
        if tree.root_open and (turn % 2 == 0 or not broken):
            chosen.append(draft(Memory.CLEAN, draft="nothing passes yet", drafts=len(tree.root.children)))
        elif broken:
            node = broken.pop(0)
            chosen.append(improve(node, reasons(repair=node.label, repairs=node.offspring.expansions)))
    return tuple(chosen)
