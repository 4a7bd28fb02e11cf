"""Work of a hosted candidate outside of its calls: pauses and waking are forgiven, in sum, and no more than that."""

from __future__ import annotations

import pytest

from evaluator_svc.hosted.outside import EARLY_NS, WAKING_CPU_NS, Outside, early_ns
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner.process import HIDDEN_NS
from shared.events import Status

MS = 1_000_000


def test_waking_up_is_no_work() -> None:
    assert early_ns(5 * MS, 5 * MS + WAKING_CPU_NS) == 0
    assert early_ns(5 * MS, 6 * MS + WAKING_CPU_NS) == MS


@pytest.mark.parametrize(("early", "late"), [(EARLY_NS, 0), (0, HIDDEN_NS)])
def test_one_long_pause_accuses_nobody(early: int, late: int) -> None:
    outside = Outside()
    outside.command(early=early, worked=0, late=late)
    assert outside.began_early() is None
    assert outside.went_on() is None


def test_a_third_of_the_work_before_the_commands_is_an_accusation() -> None:
    outside = Outside()
    for _ in range(200):
        outside.command(early=MS, worked=3 * MS, late=0)
    failed = outside.began_early()
    assert failed is not None
    assert (failed.status, caught_by(failed.evidence)) == (Status.CHEAT, Layer.CLOCKS)
    assert outside.went_on() is None


def test_a_third_of_the_work_after_the_answers_is_an_accusation() -> None:
    outside = Outside()
    for _ in range(50):
        outside.command(early=0, worked=3 * MS, late=MS)
    assert outside.went_on() is not None
    assert outside.began_early() is None


def test_a_little_of_every_command_is_forgiven_for_ever() -> None:
    outside = Outside()
    for _ in range(10_000):
        outside.command(early=MS // 5, worked=2 * MS, late=MS // 5)
    assert outside.began_early() is None
    assert outside.went_on() is None
