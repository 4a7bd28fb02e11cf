"""Whoever follows an evaluation is told each stage once as it begins, and once how it ended."""

from __future__ import annotations

from evaluator_svc.telling import ADMISSION, QUEUED, Ended, Told
from shared.events import Evaluation, Status, Trust

PASSED = Evaluation(status=Status.PASSED, trust=Trust.L2)


def followed(*spans: str, evaluation: Evaluation = PASSED) -> list[str | Ended]:
    told: list[str | Ended] = []
    follower = Told(told.append)
    follower.enter(QUEUED)
    watch = follower.stopwatch()
    for stage in spans:
        with watch.span(stage):
            watch.note("spans", stage)
    follower.finish(evaluation)
    return told


def shape(told: list[str | Ended]) -> list[object]:
    return [update if isinstance(update, str) else (update.stage, update.outcome) for update in told]


def test_spans_of_one_stage_in_a_row_are_one_stage():
    told = followed(ADMISSION, "wait", "build", "correctness", "timing", "timing", "profile")
    assert shape(told) == [
        "queued",
        "admission", ("admission", "ok"),
        "queued",
        "build", ("build", "ok"),
        "correctness", ("correctness", "ok"),
        "timing", ("timing", "ok"),
        "profile", ("profile", "ok"),
    ]  # fmt: skip
    ended = [update for update in told if isinstance(update, Ended)]
    assert all(update.elapsed_ns > 0 for update in ended)
    assert [entry.value for update in ended for entry in update.facts] == [
        "admission", "build", "correctness", "timing", "profile",
    ]  # fmt: skip


def test_the_stage_that_the_evaluation_ended_in_has_its_verdict():
    told = followed("build", "correctness", evaluation=Evaluation(status=Status.WRONG_RESULT))
    assert shape(told)[-2:] == ["correctness", ("correctness", "WRONG_RESULT")]
