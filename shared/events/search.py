"""Facts about a search as a whole, and its requests for new candidates (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.events.candidate import EndpointRecord, Memory, MoveOutcome
from shared.events.evaluation import Evaluation
from shared.events.values import Entry, KernelRef, ModelBudget, OperatorRef
from shared.shapes import LATER


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a search ends. Zero means "no limit" except for ``evaluations``; reaching ``model`` only pauses it."""

    evaluations: int
    wall_ns: int = 0
    stall: int = 0
    """Consecutive evaluations without a new best."""
    target_speedup_ppm: int = 0
    sol_fraction_ppm: int = 0
    """Stop when the best reaches this fraction of the speed of light."""
    model: ModelBudget = field(default=ModelBudget(), metadata=LATER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """A schedule that another search found on another chip: a place to begin at, untested on this one."""

    search_id: str
    candidate_id: str
    chip: str
    language: str
    kernel_id: str
    schedule_hash: str
    """Names the blob with the schedule's canonical JSON; exported logs hold it."""
    found: str = ""
    """How its kernel stood there, in words: ``1.84x less than the first draft (counted)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStarted:
    """A search was submitted. Published by whoever submits; everything a replay needs to begin."""

    search_id: str
    operator: OperatorRef
    chip: str
    policy: str
    seed: int
    budget: Budget
    languages: tuple[str, ...] = ("cpp",)
    policy_parameters: tuple[Entry, ...] = ()
    threads: int = 1
    baseline: str = "best"
    """What the score divides by: ``best`` (the faster of the two), ``eager`` or ``compiled``."""
    candidates_per_expansion: int = 2
    expansions_in_flight: int = 2
    logic_version: int = 2
    """Gates changes of decision logic, so that old logs replay under the logic they were made with."""
    at_ns: int = 0
    priority: int = 0
    """Higher is measured first; searches of equal priority share a pool fairly."""
    priors: tuple[Prior, ...] = ()
    """Tried as drafts once the search has a first draft of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchForked:
    """From here on another policy decides. Everything before is the parent's history, copied as it was."""

    search_id: str
    parent_search_id: str
    at_seq: int
    policy: str
    seed: int
    policy_parameters: tuple[Entry, ...] = ()
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPaused:
    """Nothing of the search is running, and it asks for nothing until it is resumed. ``code`` and ``detail`` are those
    of the ``ExpansionFailed`` that said so.
    """

    search_id: str
    code: str
    detail: str = ""
    evaluations: int = 0
    """Charged so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResumed:
    """The search was taken up again: after a pause, or after every process and record of it had died.

    The time since the latest fact before it was downtime: nobody was searching, so ``Budget.wall_ns`` leaves it out.
    """

    search_id: str
    at_ns: int = 0
    model: ModelBudget = field(default=ModelBudget(), metadata=LATER)
    """What the search may spend from its beginning on; zeros leave a limit as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterRecord:
    """What one way of writing kernels has brought a search so far; older attempts count less.

    An attempt is settled when its candidate has a verdict, or was rejected. Its gain is ln(speedup over what it started
    from), where the measured interval excludes that there is none.
    """

    writer: str
    """``schedule``, or ``Context.asking`` of a model's."""
    attempts_milli: int
    """Thousandths of a settled attempt."""
    gains_milli: int
    """Those of them with a gain."""
    gain_micro: int
    """Sum of the gains, in millionths."""
    time_ns: int
    """Writing and evaluating."""
    cost_micro: int
    """Paid to models, in millionths of the configured currency; -1 as soon as one price is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionRequested:
    """The search chose a node to expand. ``reasons`` are the numbers it was chosen by.

    Answered by exactly ``count`` events in all, indices 0..count-1, each CandidateProduced or CandidateRejected;
    or by one ExpansionFailed, which closes every index still open.
    """

    search_id: str
    expansion_id: str
    operator: OperatorRef
    chip: str
    languages: tuple[str, ...]
    seed: int
    count: int
    memory: Memory
    parent_ids: tuple[str, ...] = ()
    """Empty: draft from scratch. One: improve or repair. Two: crossover."""
    parents: tuple[KernelRef, ...] = ()
    parent_evaluations: tuple[Evaluation, ...] = ()
    siblings: tuple[KernelRef, ...] = ()
    sibling_ids: tuple[str, ...] = ()
    negative: tuple[KernelRef, ...] = ()
    negative_ids: tuple[str, ...] = ()
    known_kernel_ids: tuple[str, ...] = ()
    """Kernels the search has already: producing one again is a duplicate."""
    threads: int = 1
    reasons: tuple[Entry, ...] = ()
    writers: tuple[WriterRecord, ...] = ()
    """What the ways of writing have brought; empty until a model has been asked."""
    model_budget: ModelBudget = field(default=ModelBudget(), metadata=LATER)
    """What the whole search may spend on models."""
    endpoints: tuple[EndpointRecord, ...] = ()
    """What each endpoint has brought so far, sorted by name; those that were never asked are left out."""
    outcomes: tuple[MoveOutcome, ...] = ()
    """Of the nodes named here, of the parents' ancestors, and of moves near by that failed or did not pay, nearest
    first; empty until a model has been asked."""
    priors: tuple[Prior, ...] = ()
    """Of a draft. Where schedules write, index n is written from the n-th of them, and from nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePruned:
    """The search will not expand this node again. The node stays in the tree as memory."""

    search_id: str
    candidate_id: str
    rule: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCancelled:
    search_id: str
    reason: str
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFinished:
    """``outcome``: improved, estimated, no_improvement, failed or cancelled. ``reason``: which limit ended it.

    ``estimated``: the best by a model of a chip that is not there, or a first draft than which none was counted to cost
    less; checked again and right, no time was measured.
    """

    search_id: str
    outcome: str
    reason: str
    evaluations: int
    best_candidate_id: str = ""
    """Empty unless improved or estimated."""
    final_evaluation_id: str = ""
