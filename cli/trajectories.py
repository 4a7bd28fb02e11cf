"""Recorded searches as training data: answers that held, and pairs of which one is measured better (pure).

Rows are objects in the forms that trainers read: ``messages`` for supervised fine-tuning; ``prompt``, ``chosen`` and
``rejected``, lists of messages too, for preference optimisation. ``evidence`` beside them says what was measured.

Only what a model wrote itself is told of, never what a schedule wrote in its place; and of two answers to one question
one is *better* only where their measured intervals do not touch, where it was counted to cost less, or where the other
one failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli import conversations, estimates, spending
from cli.conversations import Answer, Conversation
from search_svc.tree import Node, Tree
from shared.events import NOT_THE_KERNELS_FAULT, PPM, Basis, CandidateRejected, Estimate, Evaluation
from shared.model_errors import NO_ANSWER
from shared.store import JournalEntry
from shared.writers import filled_in

NOT_THE_ANSWERS_FAULT = (*NO_ANSWER, "exhausted")
"""Rejections that say nothing about an answer."""
STANDS_ALONE = "whole"
"""The way of asking whose later answers do not lean on the earlier ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An answer to a first question, and what became of it: ``node`` is None for one that made no candidate."""

    conversation: Conversation
    answer: Answer
    node: Node | None

    @property
    def evaluation(self) -> Evaluation | None:
        """The deciding one: as re-measured, where it was."""
        return (self.node.final or self.node.evaluation) if self.node else None


def supervised(tree: Tree, entries: Sequence[JournalEntry], blobs: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    """One row for each answer whose kernel passed: the whole conversation up to it. ``evidence.best`` marks the fastest
    answer to its question.
    """
    held = [each for each in _answered(tree, entries, blobs) if each.node is not None and each.node.passed]
    for each in held:
        rivals = [other for other in held if _question(other) == _question(each)]
        assert each.node is not None
        best = max(rivals, key=lambda rival: rival.node.score_ppm if rival.node else 0)
        yield {
            "messages": [*_messages(each.answer.before), _message("assistant", each.answer.text)],
            "evidence": {**_evidence(tree, each), "best": best is each},
        }


def preferences(tree: Tree, entries: Sequence[JournalEntry], blobs: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    """One row for each pair of answers to one question of which one is better, in order of arrival."""
    answers = [each for each in _answered(tree, entries, blobs) if _stands_alone(each)]
    for chosen in answers:
        for other in answers:
            if _question(chosen) != _question(other) or chosen is other:
                continue
            because = _better(tree, chosen, other)
            if because:
                yield {
                    "prompt": _messages(chosen.answer.before[:2]),
                    "chosen": [_message("assistant", chosen.answer.text)],
                    "rejected": [_message("assistant", other.answer.text)],
                    "evidence": {
                        "because": because,
                        "chosen": _evidence(tree, chosen),
                        "rejected": _evidence(tree, other),
                    },
                }


def _answered(tree: Tree, entries: Sequence[JournalEntry], blobs: Mapping[str, bytes]) -> list[Judged]:
    """The answer of each conversation that counts: the one that became its kernel, or the last one."""
    found = []
    for fact in conversations.facts(entries):
        conversation = conversations.of(fact, blobs)
        if conversation is None or not conversation.answers:
            continue
        node = tree.nodes.get(fact.candidate_id)
        if node is not None and filled_in(node.move):
            node = None
        kernel_id = node.kernel.kernel_id if node else ""
        made = [answer for answer in conversation.answers if kernel_id and answer.kernel_id == kernel_id]
        found.append(Judged(conversation=conversation, answer=(made or conversation.answers)[-1], node=node))
    return found


def _stands_alone(each: Judged) -> bool:
    """Whether its answer is one to the first question itself."""
    return len(each.answer.before) == 2 or each.conversation.fact.context.asking == STANDS_ALONE


def _better(tree: Tree, chosen: Judged, other: Judged) -> str:
    """Why ``chosen`` is better than ``other``; empty when that was not shown."""
    mine = chosen.evaluation.speedup(tree.search.baseline) if chosen.evaluation else None
    cost = chosen.evaluation.estimate if chosen.evaluation else None
    if chosen.node is None or not chosen.node.passed or (mine is None and cost is None):
        return ""
    if other.node is None:
        fact = other.conversation.fact
        code = fact.code if isinstance(fact, CandidateRejected) else other.answer.code
        return "" if not code or code in NOT_THE_ANSWERS_FAULT else f"the other was rejected: {code}"
    if other.node.failed:
        return f"the other failed: {other.node.label}"
    theirs = other.evaluation.speedup(tree.search.baseline) if other.evaluation else None
    if not other.node.passed or mine is None:
        return _counts_less(cost, other.evaluation.estimate if other.evaluation else None)
    if theirs is None or mine.low_ppm <= theirs.high_ppm:
        return ""
    return f"its speedup is at least {mine.low_ppm / PPM:.3f}, the other's at most {theirs.high_ppm / PPM:.3f}"


def _counts_less(mine: Estimate | None, theirs: Estimate | None) -> str:
    """Why one exact count is better than another; empty when it is not, and for models, which show nothing."""
    if mine is None or theirs is None or (mine.basis, mine.unit) != (theirs.basis, theirs.unit):
        return ""
    if mine.basis is not Basis.COUNTED or mine.cost >= theirs.cost:
        return ""
    return f"it was counted to cost {estimates.amount(mine.cost, mine.unit)}, the other {theirs.cost:,}"


def _question(each: Judged) -> tuple[tuple[str, str], ...]:
    return each.answer.before[:2]


def _evidence(tree: Tree, each: Judged) -> dict[str, Any]:
    fact, node, evaluation = each.conversation.fact, each.node, each.evaluation
    told: dict[str, Any] = {
        "search_id": tree.search.search_id,
        "candidate_id": fact.candidate_id,
        "operator": tree.search.operator.name,
        "chip": tree.search.chip,
        "asking": fact.context.asking,
        "endpoint": fact.context.endpoint,
        "model": fact.context.model,
        "usage": spending.plain(fact.usage),
    }
    if node is None or evaluation is None:
        code = fact.code if isinstance(fact, CandidateRejected) else each.answer.code
        return {**told, "status": None, "code": code}
    speedup = evaluation.speedup(tree.search.baseline)
    parents = [tree.nodes[name].score_ppm / PPM for name in node.parent_ids if tree.nodes[name].passed]
    return {
        **told,
        "status": evaluation.status.value,
        "trust": evaluation.trust.value,
        "counts": evaluation.status not in NOT_THE_KERNELS_FAULT,
        "parent_ids": list(node.parent_ids),
        "parent_speedup": None if evaluation.estimate else max(parents, default=None),
        "baseline": speedup.baseline if speedup else None,
        "speedup": speedup.ratio_ppm / PPM if speedup else None,
        "ci_low": speedup.low_ppm / PPM if speedup else None,
        "ci_high": speedup.high_ppm / PPM if speedup else None,
        "estimate": estimates.plain(evaluation.estimate, tree.reference),
    }


def _messages(messages: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [_message(role, text) for role, text in messages]


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}
