"""The fold that the live view draws from."""

from __future__ import annotations

from cli.live import describe
from cli.progress import Progress, fold
from shared.events import (
    Budget,
    CandidateProduced,
    Context,
    Entry,
    Evaluation,
    EvaluationCompleted,
    KernelRef,
    Memory,
    Move,
    OperatorRef,
    Purpose,
    SearchFinished,
    SearchResumed,
    SearchStarted,
    Speedup,
    Status,
    Trust,
)

STARTED = SearchStarted(
    search_id="s",
    operator=OperatorRef(name="toy", source_hash="h"),
    chip="cpu-x86_64",
    policy="greedy",
    seed=0,
    budget=Budget(evaluations=4),
    at_ns=1_000,
)


def produced(name):
    return CandidateProduced(
        search_id="s",
        expansion_id="e",
        candidate_id=name,
        index=0,
        kernel=KernelRef(kernel_id=name, language="cpp", source_hash="h"),
        move=Move(name=f"move-{name}"),
        context=Context(memory=Memory.PARENT),
        at_ns=2_000,
    )


def verdict(name, status=Status.PASSED, ratio_ppm=1_500_000, purpose=Purpose.SEARCH, at_ns=3_000):
    speedups = (Speedup(baseline="eager", ratio_ppm=ratio_ppm, low_ppm=ratio_ppm - 1, high_ppm=ratio_ppm + 1),)
    passed = status is Status.PASSED
    evaluation = Evaluation(
        status=status,
        trust=Trust.L3 if passed else Trust.NONE,
        speedups=speedups if passed else (),
        evidence=(Entry(name="reason", value="because"),),
    )
    return EvaluationCompleted(
        search_id="s",
        evaluation_id=f"v-{name}",
        candidate_id=name,
        kernel_id=name,
        chip="cpu-x86_64",
        purpose=purpose,
        evaluation=evaluation,
        at_ns=at_ns,
    )


def folded(*events):
    state = Progress()
    for event in events:
        state = fold(state, event)
    return state


def test_a_verdict_ends_a_candidate_and_may_be_the_best():
    state = folded(STARTED, produced("a"), produced("b"), verdict("a"), verdict("b", ratio_ppm=1_200_000))

    assert state.open == 0
    assert state.evaluated == 2
    assert state.best is not None
    assert state.best.ratio_ppm == 1_500_000
    assert state.best_move == "move-a"


def test_a_noisy_verdict_is_an_attempt_and_ends_nothing():
    state = folded(STARTED, produced("a"), verdict("a", Status.NOISY))

    assert (state.open, state.evaluated, dict(state.statuses)) == (1, 0, {})


def test_a_failure_is_counted_by_its_status_and_told_with_its_reason():
    before = folded(STARTED, produced("a"))
    event = verdict("a", Status.WRONG_RESULT)
    after = fold(before, event)

    assert dict(after.statuses) == {"WRONG_RESULT": 1}
    assert describe(event, before, after) == "  [1/4] WRONG_RESULT move-a: because"


def test_a_re_measurement_is_told_as_one_and_does_not_count():
    before = folded(STARTED, produced("a"), verdict("a"))
    event = verdict("a", purpose=Purpose.FINAL)
    after = fold(before, event)

    assert after.evaluated == 1
    assert describe(event, before, after).startswith("  [re-measured] 1.50x")
    assert "move-a" in describe(event, before, after)


def test_the_time_left_follows_the_pace_so_far():
    state = folded(STARTED, produced("a"), verdict("a", at_ns=3_000))

    assert state.eta_ns == 3 * 2_000
    assert folded(STARTED).eta_ns is None


def test_the_end_is_told_with_its_reason():
    event = SearchFinished(search_id="s", outcome="improved", reason="stall", evaluations=3)

    assert "improved (stall)" in describe(event, Progress(), fold(Progress(), event))


def test_downtime_before_a_resume_is_not_part_of_the_pace():
    before = folded(STARTED, produced("a"), verdict("a", at_ns=3_000))
    after = fold(before, SearchResumed(search_id="s", at_ns=9_000_000))
    assert after.now_ns - after.started_ns == before.now_ns - before.started_ns == 2_000
