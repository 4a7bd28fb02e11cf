"""Short constructors for the facts that skills are distilled from."""

from shared.events import (
    Bound,
    CandidateProduced,
    Context,
    Diagnosis,
    Entry,
    Evaluation,
    EvaluationCompleted,
    KernelRef,
    Memory,
    Move,
    Purpose,
    Speedup,
    Status,
    Trust,
)

MOVE = "reduction:accumulators=4"


def candidate(
    name: str, parents: tuple[str, ...] = (), *, move: str = MOVE, search: str = "s1", operator_class: str = ""
) -> CandidateProduced:
    parameters = (Entry(name="operator_class", value=operator_class),) if operator_class else ()
    return CandidateProduced(
        search_id=search,
        expansion_id=f"x-{name}",
        candidate_id=name,
        index=0,
        kernel=KernelRef(kernel_id=f"k-{name}", language="cpp", source_hash="0" * 64),
        move=Move(name=move, parameters=parameters),
        context=Context(memory=Memory.PARENT),
        parent_ids=parents,
    )


def completed(
    name: str,
    speedup: float | None,
    *,
    status: Status = Status.PASSED,
    spread: float = 0.02,
    search: str = "s1",
    bound: Bound = Bound.MEMORY,
    purpose: Purpose = Purpose.SEARCH,
    baseline: str = "eager",
    chip: str = "cpu-x86_64",
) -> EvaluationCompleted:
    speedups = ()
    if speedup is not None:
        ppm = [round(speedup * factor * 1_000_000) for factor in (1, 1 - spread, 1 + spread)]
        speedups = (Speedup(baseline=baseline, ratio_ppm=ppm[0], low_ppm=ppm[1], high_ppm=ppm[2]),)
    return EvaluationCompleted(
        search_id=search,
        evaluation_id=f"e-{name}",
        candidate_id=name,
        kernel_id=f"k-{name}",
        chip=chip,
        purpose=purpose,
        evaluation=Evaluation(
            status=status,
            trust=Trust.L3 if status is Status.PASSED else Trust.NONE,
            speedups=speedups,
            diagnosis=Diagnosis(bound=bound),
        ),
    )
