"""The search tree: what is known about every candidate, as immutable values (pure).

The tree is changed by ``search_svc.apply`` only and read by everybody else: policies, pruners, the final stage,
reports. It holds nothing that cannot be folded again from the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from shared.events import (
    NOT_THE_KERNELS_FAULT,
    Basis,
    Context,
    EndpointRecord,
    Entry,
    Evaluation,
    EvaluationRequested,
    ExpansionRequested,
    KernelRef,
    Move,
    SearchStarted,
    Status,
    Usage,
    WriterRecord,
)

Value = TypeVar("Value")

RETRYABLE = (Status.NOISY, Status.INFRASTRUCTURE)
"""Our fault: measured again, never charged to the candidate."""

UNREPAIRABLE = (*NOT_THE_KERNELS_FAULT, Status.PASSED, Status.CHEAT, Status.NO_CUSTOM_KERNEL)


class Stage(StrEnum):
    """Where a node is in its life."""

    PENDING = "PENDING"
    """Waiting for its verdict."""
    DONE = "DONE"
    SKIPPED = "SKIPPED"
    """Arrived after the search had reached a limit: kept as a record, never evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offspring:
    """What came of expanding a node, or, at the root, of drafting."""

    children: tuple[str, ...] = ()
    expansions: int = 0
    open: int = 0
    """Expansions not answered in full."""
    barren: int = 0
    """Answered expansions in a row, up to now, that brought no new kernel but a known one, or none that is left,"""
    bad_texts: int = 0
    """and that brought no kernel at all."""
    failures: int = 0
    """Failed children in a row, up to now."""
    exhausted: bool = False
    """The synthesizer said that nothing is left to try from here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What the policy has learnt about the subtree under a node; written by ``Policy.tell`` only.

    Values are natural logarithms of speedups in millionths, so they have no unit of time in them.
    """

    visits: int = 0
    passes: int = 0
    value_micro: int = 0
    """Sum over the passes."""
    best_micro: int = 0
    """Largest of the passes; meaningless while ``passes`` is 0."""
    islands: tuple[int, ...] = ()
    """Populations the node belongs to; its birthplace first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One candidate. ``parent_ids`` is empty for a draft and has two members for a crossover."""

    candidate_id: str
    birth: int
    """Position in order of arrival, from 0."""
    expansion_id: str
    parent_ids: tuple[str, ...]
    kernel: KernelRef
    move: Move
    context: Context
    usage: Usage
    reasons: tuple[Entry, ...]
    """The numbers its parent was chosen by."""
    stage: Stage
    attempt: int = 0
    """Search evaluations requested."""
    evaluation: Evaluation | None = None
    score_ppm: int = 0
    """Speedup over the search's baseline, or, where costs are estimated, the first draft's cost over its own; 0 for
    anything that did not pass."""
    final: Evaluation | None = None
    """The re-measurement in the final stage, if there was one."""
    offspring: Offspring = Offspring()
    pruned: str = ""
    """The rule that closed the node, or empty."""
    statistics: Statistics = Statistics()

    @property
    def passed(self) -> bool:
        return self.stage is Stage.DONE and self.evaluation is not None and self.evaluation.status is Status.PASSED

    @property
    def failed(self) -> bool:
        """The verdict is against the kernel itself."""
        if self.stage is not Stage.DONE or self.evaluation is None:
            return False
        return self.evaluation.status is not Status.PASSED and self.evaluation.status not in NOT_THE_KERNELS_FAULT

    @property
    def repairable(self) -> bool:
        return self.failed and self.evaluation is not None and self.evaluation.status not in UNREPAIRABLE

    @property
    def label(self) -> str:
        """Its status, or its stage while it has none."""
        return self.evaluation.status.value if self.stage is Stage.DONE and self.evaluation else self.stage.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """One request to the synthesizer and what has come back so far."""

    request: ExpansionRequested
    open: tuple[int, ...]
    """Indices not answered yet."""
    fresh: int = 0
    """New kernels it brought."""
    codes: tuple[str, ...] = ()
    """Why the other indices brought none."""
    unanswered: int = 0
    """Those of them at which a model was asked and could not answer: they say nothing about the space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalTry:
    """One would-be winner under re-measurement; ``evaluation`` is None until its verdict."""

    candidate_id: str
    evaluation_id: str
    attempt: int
    evaluation: Evaluation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The first draft of a search whose chip has no clock: the first kernel that passed with an estimate.

    There is no baseline on such a chip, so that this is what every other kernel of the search is divided by.
    """

    candidate_id: str
    basis: Basis
    cost: int
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A search so far. Mappings are never changed in place and keep order of arrival."""

    search: SearchStarted
    nodes: Mapping[str, Node] = field(default_factory=dict)
    expansions: Mapping[str, Expansion] = field(default_factory=dict)
    in_flight: Mapping[str, EvaluationRequested] = field(default_factory=dict)
    """Requested evaluations without a verdict, by evaluation id."""
    kernels: Mapping[str, str] = field(default_factory=dict)
    """Kernel id to the candidate that brought it first."""
    root: Offspring = Offspring()
    charged: int = 0
    """Candidates sent to evaluation, less those that no attempt could measure; what the budget counts."""
    duplicates: int = 0
    rejected: int = 0
    writers: Mapping[str, WriterRecord] = field(default_factory=dict)
    """What each way of writing has brought; see ``writers``."""
    endpoints: Mapping[str, EndpointRecord] = field(default_factory=dict)
    """What each endpoint has brought; see ``spending``."""
    spent: Usage = field(default_factory=Usage)
    """On models: every answer, also those that brought no candidate."""
    reference: Reference | None = None
    """None while nothing was estimated, so always where kernels are timed."""
    ignored: int = 0
    """Facts that answered nothing outstanding: late, repeated or foreign."""
    best_id: str = ""
    since_best: int = 0
    """Verdicts since the best changed."""
    barren_row: int = 0
    """Answered expansions in a row without a new kernel, over the whole tree."""
    failed_expansions_row: int = 0
    infrastructure_row: int = 0
    """Candidates in a row given up because our side failed."""
    unmeasured_row: int = 0
    """Candidates in a row that no attempt could measure, for whatever reason."""
    synthesis_failure: tuple[str, str] = ("", "")
    """Code and detail of the last ExpansionFailed."""
    unanswered_row: int = 0
    """Expansions in a row at none of whose indices a model could answer."""
    halted: tuple[str, str] = ("", "")
    """Code and detail of what keeps the synthesizer from writing: nothing more is asked until the search is resumed."""
    paused: bool = False
    """Halted, and nothing is running any more."""
    now_ns: int = 0
    """Latest time recorded in a fact."""
    down_ns: int = 0
    """Time between the last fact before a crash and the resume after it, over all resumes."""
    verdicts: tuple[str, ...] = ()
    """Candidates in the order their verdicts came; what the policy has been told."""
    limit: str = ""
    """Which limit was reached; once set, nothing new is started."""
    finals: tuple[FinalTry, ...] = ()
    outcome: str = ""
    """Set by SearchFinished."""
    reason: str = ""
    winner_id: str = ""

    @property
    def finished(self) -> bool:
        return bool(self.outcome)

    @property
    def running(self) -> bool:
        """Whether an answer or a verdict is outstanding."""
        return bool(self.open_slots or self.pending)

    @property
    def best(self) -> Node | None:
        return self.nodes.get(self.best_id)

    @property
    def elapsed_ns(self) -> int:
        """Time spent searching, by recorded times alone: from the submission to the latest fact, less downtime."""
        return self.now_ns - self.search.at_ns - self.down_ns

    @property
    def open_slots(self) -> int:
        """Candidates asked of the synthesizer and not answered."""
        return sum(len(expansion.open) for expansion in self.expansions.values())

    @property
    def pending(self) -> int:
        """Candidates waiting for their verdict."""
        return sum(node.stage is Stage.PENDING for node in self.nodes.values())

    @property
    def remaining(self) -> int:
        """Evaluations that may still be started, less what open expansions may yet claim."""
        return self.search.budget.evaluations - self.charged - self.open_slots

    def passed(self) -> Iterator[Node]:
        """Passed nodes in order of arrival."""
        return (node for node in self.nodes.values() if node.passed)

    def expandable(self) -> Iterator[Node]:
        """Nodes an expansion may start from, in order of arrival; the root, for drafts, is ``root_open``."""
        return (node for node in self.nodes.values() if not node.pruned and (node.passed or node.repairable))

    @property
    def root_open(self) -> bool:
        """Whether another draft may be asked for."""
        return not self.root.exhausted

    def lineage(self, candidate_id: str) -> Iterator[Node]:
        """The node and its ancestors through first parents, nearest first."""
        while node := self.nodes.get(candidate_id):
            yield node
            candidate_id = node.parent_ids[0] if node.parent_ids else ""


def put(mapping: Mapping[str, Value], key: str, value: Value) -> dict[str, Value]:
    """A copy of ``mapping`` with ``key`` set."""
    return {**mapping, key: value}


def without(mapping: Mapping[str, Value], key: str) -> dict[str, Value]:
    """A copy of ``mapping`` without ``key``."""
    return {name: value for name, value in mapping.items() if name != key}


def put_node(tree: Tree, node: Node) -> Tree:
    """``tree`` with ``node`` in the place of the node of its id, if there is one."""
    return replace(tree, nodes=put(tree.nodes, node.candidate_id, node))


def change_offspring(tree: Tree, parent_ids: tuple[str, ...], change: Callable[[Offspring], Offspring]) -> Tree:
    """Change what came of the first parent, or of the root when there is none."""
    if not parent_ids:
        return replace(tree, root=change(tree.root))
    owner = tree.nodes[parent_ids[0]]
    return put_node(tree, replace(owner, offspring=change(owner.offspring)))
