"""Whether the log of a search is in order: it ends, it verifies, and every evaluation counts once (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from search_svc import invariants, replay
from search_svc.tree import Tree
from shared import wire
from shared.errors import KernelEvolveError
from shared.events import NOT_THE_KERNELS_FAULT, EvaluationCompleted, EvaluationRequested, Purpose
from shared.store import JournalEntry

Shape = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One search. ``verdicts`` counts its evaluations by status."""

    search_id: str
    problems: tuple[str, ...]
    shape: Shape
    verdicts: Counter[str]
    entries: int


def audit(search_id: str, entries: Sequence[JournalEntry], from_bus: Sequence[JournalEntry]) -> Audit:
    """What is to be said of the log in the journal, and of the same log recomputed from the bus."""
    try:
        tree = replay.verify(entries).tree
    except KernelEvolveError as error:
        return Audit(search_id=search_id, problems=(str(error),), shape=(), verdicts=Counter(), entries=len(entries))
    answers = list(_answers(entries))
    return Audit(
        search_id=search_id,
        problems=tuple(_problems(tree, entries, answers, from_bus)),
        shape=shape(tree),
        verdicts=Counter(answer.evaluation.status.value for answer in answers),
        entries=len(entries),
    )


def shape(tree: Tree) -> Shape:
    """Everything about a tree but times, and who was asked how often."""
    nodes = tuple(
        (
            node.candidate_id,
            node.parent_ids,
            node.kernel.kernel_id,
            node.move.name,
            node.label,
            node.score_ppm,
            node.pruned,
            node.final.status.value if node.final else "",
        )
        for node in tree.nodes.values()
    )
    return (*nodes, tree.outcome, tree.reason, tree.winner_id, tree.best_id, tree.charged)


def _problems(
    tree: Tree,
    entries: Sequence[JournalEntry],
    answers: Sequence[EvaluationCompleted],
    from_bus: Sequence[JournalEntry],
) -> Iterator[str]:
    yield from invariants.violations(tree)
    if not tree.finished:
        yield "has not ended"
    if tree.in_flight:
        yield f"{len(tree.in_flight)} evaluations were never answered"
    asked = {request.evaluation_id for request in _requests(entries)}
    answered = Counter(answer.evaluation_id for answer in answers)
    if twice := [each for each, times in answered.items() if times > 1]:
        yield f"journalled more than once: {', '.join(twice)}"
    if lost := asked - set(answered):
        yield f"asked and never answered: {', '.join(sorted(lost))}"
    if strange := set(answered) - asked:
        yield f"answered and never asked: {', '.join(sorted(strange))}"
    charged = len({answer.candidate_id for answer in answers if _is_charged(answer)})
    if tree.charged != charged:
        yield f"{tree.charged} evaluations charged, {charged} candidates got a verdict"
    if tree.reason == "evaluations" and charged != tree.search.budget.evaluations:
        yield f"ended after {charged} evaluations of {tree.search.budget.evaluations}"
    if [entry.digest for entry in from_bus] != [entry.digest for entry in entries]:
        yield f"the bus gives another log: {len(from_bus)} entries, not {len(entries)}, or others"


def _is_charged(answer: EvaluationCompleted) -> bool:
    return answer.purpose is Purpose.SEARCH and answer.evaluation.status not in NOT_THE_KERNELS_FAULT


def _answers(entries: Iterable[JournalEntry]) -> Iterator[EvaluationCompleted]:
    for entry in entries:
        event = wire.unpack(entry.event).event
        if isinstance(event, EvaluationCompleted):
            yield event


def _requests(entries: Iterable[JournalEntry]) -> Iterator[EvaluationRequested]:
    for entry in entries:
        for command in entry.commands:
            event = wire.unpack(command).event
            if isinstance(event, EvaluationRequested):
                yield event
