"""Short constructors for events: every argument has a default, so that a test names only what it is about."""

from __future__ import annotations

from dataclasses import replace

from shared import envelopes, ids
from shared.clock import ManualClock
from shared.events import (
    Basis,
    Budget,
    CandidateProduced,
    CandidateRejected,
    Context,
    Count,
    Entry,
    Envelope,
    Estimate,
    Evaluation,
    EvaluationCompleted,
    EvaluationRequested,
    Event,
    ExpansionFailed,
    ExpansionRequested,
    KernelRef,
    Memory,
    Move,
    OperatorRef,
    Roofline,
    SearchStarted,
    Speedup,
    Status,
    Trust,
    Usage,
)

SEARCH_ID = "search-1"
OPERATOR = OperatorRef(name="toy", source_hash="operator-source")
SECOND_NS = 1_000_000_000
UNSPENT = Usage()


def a_search(**changes) -> SearchStarted:
    """A greedy search of 20 evaluations, 2 candidates per expansion, 2 expansions in flight, started at time 0."""
    budget_fields = ("evaluations", "wall_ns", "stall", "target_speedup_ppm", "sol_fraction_ppm")
    limits = {name: changes.pop(name) for name in budget_fields if name in changes}
    parameters = changes.pop("parameters", {})
    search = SearchStarted(
        search_id=SEARCH_ID,
        operator=OPERATOR,
        chip="cpu-x86_64",
        policy="greedy",
        seed=1,
        budget=Budget(**{"evaluations": 20, **limits}),
        policy_parameters=tuple(Entry(name=name, value=str(value)) for name, value in parameters.items()),
    )
    return replace(search, **changes)


def a_kernel(text: str) -> KernelRef:
    """A kernel whose source is named by ``text``."""
    return KernelRef(kernel_id=ids.derive("cpp", text, "ke_launch"), language="cpp", source_hash=text)


def a_pass(ratio_ppm: int = 1_500_000, *, spread_ppm: int = 50_000, trust: Trust = Trust.L3, fraction_ppm: int = 0):
    """A PASSED verdict: ``ratio_ppm`` over compiled, 1.25 times that over eager."""

    def speedup(baseline: str, ratio: int) -> Speedup:
        return Speedup(baseline=baseline, ratio_ppm=ratio, low_ppm=ratio - spread_ppm, high_ppm=ratio + spread_ppm)

    return Evaluation(
        status=Status.PASSED,
        trust=trust,
        speedups=(speedup("compiled", ratio_ppm), speedup("eager", ratio_ppm * 5 // 4)),
        roofline=Roofline(fraction_ppm=fraction_ppm),
    )


def an_estimate(
    cost: int, basis: Basis = Basis.MODELLED, *, unit: str = "ns", trust: Trust | None = None
) -> Evaluation:
    """A PASSED verdict on a chip without a clock: trusted as its basis is, unless told otherwise."""
    counted = basis is Basis.COUNTED
    return Evaluation(
        status=Status.PASSED,
        trust=trust or (Trust.L3 if counted else Trust.L1),
        estimate=Estimate(basis=basis, cost=cost, unit=unit, counts=(Count(name="instructions", value=cost),)),
    )


def a_failure(status: Status = Status.WRONG_RESULT) -> Evaluation:
    return Evaluation(status=status, evidence=(Entry(name="first_error", value="made up"),))


def produced(request: ExpansionRequested, index: int, kernel: KernelRef | str, at_ns: int = 0) -> CandidateProduced:
    """The answer to one index of ``request``."""
    return CandidateProduced(
        search_id=request.search_id,
        expansion_id=request.expansion_id,
        candidate_id=ids.derive(request.expansion_id, "candidate", index),
        index=index,
        kernel=a_kernel(kernel) if isinstance(kernel, str) else kernel,
        move=Move(name="move"),
        context=Context(memory=Memory.PARENT),
        parent_ids=request.parent_ids,
        at_ns=at_ns,
    )


def rejected(request: ExpansionRequested, index: int, code: str = "exhausted", at_ns: int = 0) -> CandidateRejected:
    return CandidateRejected(
        search_id=request.search_id,
        expansion_id=request.expansion_id,
        candidate_id=ids.derive(request.expansion_id, "candidate", index),
        index=index,
        code=code,
        at_ns=at_ns,
    )


def expansion_failed(
    request: ExpansionRequested, code: str, detail: str = "", *, pauses: bool = False, usage: Usage = UNSPENT
) -> ExpansionFailed:
    return ExpansionFailed(
        search_id=request.search_id,
        expansion_id=request.expansion_id,
        code=code,
        detail=detail,
        pauses=pauses,
        usage=usage,
    )


def measured(request: EvaluationRequested, evaluation: Evaluation, at_ns: int = 0) -> EvaluationCompleted:
    """The verdict on ``request``."""
    return EvaluationCompleted(
        search_id=request.search_id,
        evaluation_id=request.evaluation_id,
        candidate_id=request.candidate_id,
        kernel_id=request.kernel.kernel_id,
        chip=request.chip,
        purpose=request.purpose,
        evaluation=evaluation,
        attempt=request.attempt,
        at_ns=at_ns,
    )


def enveloped(event: Event, cause_id: str = "", n: int = 0) -> Envelope:
    """``event`` as a worker publishes it: its id derived from the request it answers."""
    return envelopes.envelope(event, cause_id=cause_id or _request_id(event), source="/test", clock=ManualClock(), n=n)


def _request_id(event: Event) -> str:
    match event:
        case CandidateProduced() | CandidateRejected():
            return event.candidate_id
        case ExpansionFailed():
            return event.expansion_id
        case EvaluationCompleted():
            return event.evaluation_id
        case _:
            return getattr(event, "search_id", "")
