"""Every domain event, as a frozen dataclass (pure).

Facts are in the past tense. Measurements are integers (nanoseconds, bytes, counts); ratios are parts per million
(``1_500_000`` = 1.5x), so that equal logs are equal bytes on every machine. Everything big (sources, prompts,
profiles, logs) is a blob named by its content hash.

Times named ``at_ns`` are the producer's wall clock, recorded so that decisions about time replay.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PPM = 1_000_000


class Status(StrEnum):
    """How the evaluation of one candidate ended. Only PASSED has a speedup."""

    PASSED = "PASSED"
    """Correct on every check made; timings are valid."""
    COMPILE_ERROR = "COMPILE_ERROR"
    """The toolchain rejected the source; evidence has its first error."""
    LAUNCH_FAILED = "LAUNCH_FAILED"
    """Built, but could not be loaded, lacks its entry, or the entry refused the operator's own inputs."""
    RUNTIME_ERROR = "RUNTIME_ERROR"
    """Crashed, wrote out of bounds, or returned an error code."""
    TIMEOUT = "TIMEOUT"
    """Ran past its limit; the whole process tree was killed."""
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    """Asked for more memory than the sandbox gives."""
    WRONG_RESULT = "WRONG_RESULT"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    """Two runs on identical bytes differ."""
    MUTATED_INPUT = "MUTATED_INPUT"
    """An input, or memory outside the outputs, changed."""
    PRECISION_DOWNGRADE = "PRECISION_DOWNGRADE"
    """Error is that of a lower precision than the operator declares."""
    NO_CUSTOM_KERNEL = "NO_CUSTOM_KERNEL"
    """Falls back to the reference or a library."""
    CHEAT = "CHEAT"
    """Tried to reach the verdict, the clock, the network or other processes."""
    NOISY = "NOISY"
    """The machine was too noisy to time; requeued, never charged to the candidate."""
    INFRASTRUCTURE = "INFRASTRUCTURE"
    """Our failure; requeued, never charged and never cached."""
    CANCELLED = "CANCELLED"


NOT_THE_KERNELS_FAULT = (Status.NOISY, Status.INFRASTRUCTURE, Status.CANCELLED)
"""Endings that say nothing about the kernel: never charged, learnt from or remembered."""


class Trust(StrEnum):
    """What the verdict rests on; each level includes those before it."""

    NONE = "NONE"
    L0 = "L0"  # compiled
    L1 = "L1"  # correct on public inputs
    L2 = "L2"  # + held-out shapes and values, checks on timed calls
    L3 = "L3"  # + clock agreement, speed-of-light floor, A/B interval
    L4 = "L4"  # + sanitizers, re-measured in fresh workers


class Bound(StrEnum):
    """What limits a kernel."""

    UNKNOWN = "unknown"
    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    OCCUPANCY = "occupancy"
    LAUNCH = "launch"


class Purpose(StrEnum):
    """SEARCH steers; FINAL re-measures a would-be winner in fresh processes on fresh inputs."""

    SEARCH = "SEARCH"
    FINAL = "FINAL"


class Memory(StrEnum):
    """What an expansion may look at besides the operator and the chip."""

    PARENT = "parent"
    SIBLINGS = "siblings"
    PARENT_AND_SIBLINGS = "parent+siblings"
    CLEAN = "clean"


class SkillStatus(StrEnum):
    HYPOTHESIS = "hypothesis"
    SUPPORTED = "supported"
    RETRACTED = "retracted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A named value in a list that must keep its order: evidence, environment, parameters, scores."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRef:
    """An operator frozen by its hash. ``source_hash`` names the blob with the reference's text."""

    name: str
    source_hash: str
    kind: str = "kernelbench"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRef:
    """Exactly what is built and measured. ``kernel_id = derive(language, source_hash, *flags, entry)``.

    ``schedule_hash`` names the blob with the schedule's canonical JSON, or is empty when no schedule wrote the kernel.
    """

    kernel_id: str
    language: str
    source_hash: str
    flags: tuple[str, ...] = ()
    entry: str = "ke_launch"
    schedule_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a search ends. Zero means "no limit" except for ``evaluations``."""

    evaluations: int
    wall_ns: int = 0
    stall: int = 0
    """Consecutive evaluations without a new best."""
    target_speedup_ppm: int = 0
    sol_fraction_ppm: int = 0
    """Stop when the best reaches this fraction of the speed of light."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What changed between parent and child: a schedule move, a crossover, or a rewrite by a model."""

    name: str
    parameters: tuple[Entry, ...] = ()
    rationale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the synthesizer saw when it wrote a candidate."""

    memory: Memory
    diagnosis: Bound = Bound.UNKNOWN
    sibling_ids: tuple[str, ...] = ()
    negative_ids: tuple[str, ...] = ()
    """Failed nodes it was told to avoid."""
    document_ids: tuple[str, ...] = ()
    skill_ids: tuple[str, ...] = ()
    prompt_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a candidate cost to write. ``cost_micro`` is -1 when the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_micro: int = 0
    latency_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Times of one contestant in one measurement. Block times are per call, in the order measured."""

    name: str
    median_ns: int
    block_ns: tuple[int, ...] = ()
    calls_per_block: int = 1
    cold_ns: int = 0
    """First call after the caches were evicted; 0 when not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """``baseline`` time over candidate time: median of paired block log-ratios with a 95 % bootstrap interval."""

    baseline: str
    ratio_ppm: int
    low_ppm: int
    high_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Where the kernel stands against measured peaks. Zeros mean unknown, never guessed."""

    bytes_min: int = 0
    """Compulsory traffic: every input read once, every output written once."""
    flops_min: int = 0
    floor_ns: int = 0
    """max(bytes_min / bandwidth, flops_min / peak) with this worker's calibrated peaks."""
    fraction_ppm: int = 0
    """floor_ns / measured time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why the kernel is as slow as it is."""

    bound: Bound = Bound.UNKNOWN
    evidence: tuple[Entry, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """Where the evaluation's own time went, in nanoseconds. ``framework`` is what none of the others explains."""

    build_ns: int = 0
    correctness_ns: int = 0
    timing_ns: int = 0
    profile_ns: int = 0
    wait_ns: int = 0
    """Waiting for the device lease."""
    framework_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The verdict on one kernel, a value: a bad kernel is data.

    Raises:
        ValueError: a speedup on anything but PASSED, or PASSED without trust.
    """

    status: Status
    trust: Trust = Trust.NONE
    evidence: tuple[Entry, ...] = ()
    """Why: e.g. ``first_error``, ``max_error``, ``signal``; ends the sentence "rejected because"."""
    timings: tuple[Timing, ...] = ()
    speedups: tuple[Speedup, ...] = ()
    roofline: Roofline = Roofline()
    diagnosis: Diagnosis = Diagnosis()
    stages: StageTimes = StageTimes()
    sandbox: str = ""
    """Sandbox layers in force, e.g. ``namespaces+seccomp+rlimits``."""
    environment: tuple[Entry, ...] = ()
    log_hash: str = ""
    memoised: bool = False

    def __post_init__(self) -> None:
        if self.speedups and self.status is not Status.PASSED:
            raise ValueError(f"{self.status} cannot carry a speedup")
        if self.status is Status.PASSED and self.trust is Trust.NONE:
            raise ValueError("PASSED needs a trust level")

    def speedup(self, baseline: str = "best") -> Speedup | None:
        """The speedup over ``baseline``; "best" is the faster baseline, i.e. the smallest ratio."""
        if baseline == "best":
            return min(self.speedups, key=lambda s: (s.ratio_ppm, s.baseline), default=None)
        return next((s for s in self.speedups if s.baseline == baseline), None)


# --- the events -----------------------------------------------------------------------------------------------------


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
    logic_version: int = 1
    """Gates changes of decision logic, so that old logs replay under the logic they were made with."""
    at_ns: int = 0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateProduced:
    search_id: str
    expansion_id: str
    candidate_id: str
    index: int
    kernel: KernelRef
    move: Move
    context: Context
    parent_ids: tuple[str, ...] = ()
    usage: Usage = Usage()
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRejected:
    """The synthesizer has nothing to evaluate at this index. ``code``: exhausted, duplicate, unparsable, refused …"""

    search_id: str
    expansion_id: str
    candidate_id: str
    index: int
    code: str
    detail: str = ""
    usage: Usage = Usage()
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionFailed:
    """The expansion as a whole failed. ``code``: unsupported_operator, endpoint, budget …"""

    search_id: str
    expansion_id: str
    code: str
    detail: str = ""
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequested:
    search_id: str
    evaluation_id: str
    candidate_id: str
    kernel: KernelRef
    operator: OperatorRef
    chip: str
    purpose: Purpose
    threads: int = 1
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCompleted:
    search_id: str
    evaluation_id: str
    candidate_id: str
    kernel_id: str
    chip: str
    purpose: Purpose
    evaluation: Evaluation
    attempt: int = 1
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePruned:
    """The search will not expand this node again. The node stays in the tree as memory."""

    search_id: str
    candidate_id: str
    rule: str
    detail: str = ""


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
class SearchResumed:
    """The search was taken up again after every process and record of it had died.

    The time since the latest fact before it was downtime: nobody was searching, so ``Budget.wall_ns`` leaves it out.
    """

    search_id: str
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCancelled:
    search_id: str
    reason: str
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFinished:
    """``outcome``: improved, no_improvement, failed or cancelled. ``reason``: which limit ended it."""

    search_id: str
    outcome: str
    reason: str
    evaluations: int
    best_candidate_id: str = ""
    """Empty unless improved."""
    final_evaluation_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillDistilled:
    """A claim and its evidence: *in this context, this move multiplies time by* ``ratio_ppm``.

    ``ratio_ppm`` below 1,000,000 is faster. ``low``/``high`` are the posterior's 90 % interval.
    """

    skill_id: str
    move: str
    operator_class: str
    chip: str
    language: str
    bound: Bound
    status: SkillStatus
    ratio_ppm: int
    low_ppm: int
    high_ppm: int
    evidence_for: tuple[str, ...] = ()
    evidence_against: tuple[str, ...] = ()
    revision: int = 1
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRetired:
    skill_id: str
    reason: str
    evidence_against: tuple[str, ...] = ()
    revision: int = 1


Event = (
    SearchStarted
    | SearchForked
    | SearchResumed
    | ExpansionRequested
    | CandidateProduced
    | CandidateRejected
    | ExpansionFailed
    | EvaluationRequested
    | EvaluationCompleted
    | NodePruned
    | SearchCancelled
    | SearchFinished
    | SkillDistilled
    | SkillRetired
)

EVENT_TYPES: tuple[type[Event], ...] = (
    SearchStarted,
    SearchForked,
    SearchResumed,
    ExpansionRequested,
    CandidateProduced,
    CandidateRejected,
    ExpansionFailed,
    EvaluationRequested,
    EvaluationCompleted,
    NodePruned,
    SearchCancelled,
    SearchFinished,
    SkillDistilled,
    SkillRetired,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """An event with its CloudEvents attributes. ``time_ns`` is information only: no decision reads it."""

    id: str
    """Derived from the cause; the dedupe key."""
    event: Event
    source: str
    """Who published it, e.g. ``/evaluator/cpu-x86_64``."""
    subject: str
    """The entity, e.g. ``search/<id>/candidate/<id>``."""
    partition_key: str
    causation_id: str
    correlation_id: str
    """The search."""
    time_ns: int = 0
    attempt: int = 1
    lease: str = ""
    """Fencing token of the worker's device lease, if it held one."""
    traceparent: str = ""
