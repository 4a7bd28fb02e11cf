"""A timed process is asked what the check asked, at moments that nobody knows."""

from __future__ import annotations

import random

import numpy as np
import pytest

from evaluator_svc import unannounced
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.ledger import Stage
from evaluator_svc.unannounced import BLOCKS, FEWEST, Unannounced
from shared.contract import Contract
from shared.events import Status
from tests.unit.evaluator.contest import WORK_NS, contest, held_out, honest, softmax

LARGE = held_out("scaled_up", lambda x: x * 40)
SMALL = held_out("scaled_down", lambda x: x / 40)


def without_maximum(x, y, moment):
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(x)
        y[:] = e / e.sum(axis=-1, keepdims=True)
    return 0.6 * WORK_NS


def in_eighteen_bits(x, y, moment):
    softmax(x, y)
    y *= np.float32(1 + 2**-18)
    return 0.6 * WORK_NS


def careful_at_first(careless):
    def kernel(x, y, moment):
        return (honest if moment.count < 60 else careless)(x, y, moment)

    return kernel


@pytest.mark.parametrize("kernel", [without_maximum, careful_at_first(without_maximum)])
def test_who_computes_what_suffices_for_the_operators_own_values_is_found_while_it_is_timed(kernel):
    measured, _ = contest(kernel, checked=[LARGE, SMALL])
    assert measured.verdict.status is Status.WRONG_RESULT
    assert caught_by(measured.verdict.evidence) is Layer.JUDGE


def test_what_the_borrowed_limits_let_pass_is_judged_against_fp64_on_some_timed_calls():
    careless = careful_at_first(in_eighteen_bits)
    assert contest(careless)[0].verdict.passed, "the borrowed limits are the wider ones"
    measured, _ = contest(careless, checked=[held_out("own inputs", lambda x: x + 0)] * 12)
    assert not measured.verdict.passed


def test_a_verdict_on_held_out_values_tells_nothing_of_them():
    measured, _ = contest(without_maximum, checked=[LARGE])
    assert {entry.name for entry in measured.verdict.evidence} == {"caught_by", "reason", "case", "call"}


def test_an_honest_kernel_is_right_on_all_of_them_and_the_ledger_says_when_it_had_them():
    measured, ledger = contest(honest, checked=[LARGE, SMALL])
    assert measured.verdict.passed
    told = [call for call in ledger.calls if call.stage is Stage.CHECK]
    for name in (LARGE.name, SMALL.name):
        assert sum(name in call.case for call in told) == 1


def test_weights_that_persist_are_not_exchanged_for_those_of_the_check():
    _, ledger = contest(honest, checked=[LARGE], contract=Contract(persistent_weights=True))
    assert not any(LARGE.name in call.case for call in ledger.calls)


def test_they_come_at_other_moments_in_each_process():
    moments = set()
    for _ in range(6):
        _, ledger = contest(honest, checked=[LARGE])
        moments.add(next(i for i, call in enumerate(ledger.calls) if LARGE.name in call.case))
    assert len(moments) > 1


def test_a_long_call_has_few_of_them():
    many = [LARGE] * 40
    assert Unannounced(many, random.Random(1), calls=1).left == BLOCKS
    assert Unannounced(many, random.Random(1), calls=100).left == len(many)


def test_a_large_answer_has_few_of_them(monkeypatch):
    monkeypatch.setattr(unannounced, "BYTES_MOST", LARGE.references[0].spec.nbytes)
    assert Unannounced([LARGE] * 40, random.Random(1), calls=100).left == FEWEST
