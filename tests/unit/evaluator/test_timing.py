"""The contest tells kernels that work from kernels that remember, whatever it is that they remember by."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.claims import Physics, claim
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.ledger import Stage
from evaluator_svc.roofline import Floors
from evaluator_svc.samples import CANDIDATE
from evaluator_svc.settings import TimingSettings
from shared.contract import Contract
from shared.events import Status, Trust
from tests.unit.evaluator.contest import COLUMNS, ROWS, WORK_NS, contest, honest, softmax

READ_NS = 10_000.0
"""What it costs to compare or to copy everything."""
NO_FLOOR = Floors(memory_ns=0.0, compute_ns=0.0, level="L3")
PHYSICS = Physics(floors=NO_FLOOR, written=NO_FLOOR, memory_traffic_ns=READ_NS)


def verdict(measured):
    """Status and the layer that caught it, of the whole timing stage."""
    if not measured.verdict.passed:
        return measured.verdict.status, caught_by(measured.verdict.evidence)
    made = claim([measured], TimingSettings(), PHYSICS, 1, threads=1)
    return made.status, caught_by(made.evidence)


class FirstAnswer:
    """Works once per address, or once at all (H21, H22)."""

    def __init__(self, key):
        self.key, self.kept = key, {}

    def __call__(self, x, y, moment):
        key = self.key(x, moment)
        if key in self.kept:
            y[:] = self.kept[key]
            return READ_NS
        softmax(x, y)
        self.kept[key] = y.copy()
        return WORK_NS


KEYS = {
    "the shape": lambda x, moment: x.shape,
    "the address": lambda x, moment: moment.address,
    "a few elements": lambda x, moment: (x[0, 0], x[-1, -1], x[3, 7]),
    "rounded sums of rows": lambda x, moment: tuple(np.round(x[::2].sum(axis=1), 2)),
    "all but one row": lambda x, moment: x[1:].tobytes(),
}


@pytest.mark.parametrize("key", KEYS)
def test_an_answer_kept_by_part_of_the_input_is_given_for_other_values_and_caught(key):
    assert verdict(contest(FirstAnswer(KEYS[key]))[0]) == (Status.CHEAT, Layer.FRESH)


CONTENTS = {
    "bytes": lambda x, moment: x.tobytes(),
    "rounded values": lambda x, moment: np.round(x, 3).tobytes(),
    "bytes at an address": lambda x, moment: (moment.address, x.tobytes()),
}


@pytest.mark.parametrize("key", CONTENTS)
def test_an_answer_kept_by_all_of_the_input_is_right_but_shows_in_what_it_costs(key):
    assert verdict(contest(FirstAnswer(CONTENTS[key]))[0]) == (Status.CHEAT, Layer.FRESH)


class SkipsWhenAnswered:
    """Works only where its output does not hold its last answer: poison has it work, repetition not (H-NaN)."""

    def __init__(self, *, looks_at_all=False, only_quickly=False):
        self.looks, self.quickly, self.answers = looks_at_all, only_quickly, {}

    def __call__(self, x, y, moment):
        kept = self.answers.get(moment.address)
        holds = kept is not None and np.array_equal(kept[1], y)
        same = kept is not None and (not self.looks or np.array_equal(kept[0], x))
        if holds and same and (not self.quickly or moment.pause_ns < 10_000):
            return READ_NS
        softmax(x, y)
        self.answers[moment.address] = x.copy(), y.copy()
        return WORK_NS


@pytest.mark.parametrize("only_quickly", [False, True])
def test_a_kernel_that_leaves_its_own_answer_alone_misses_what_changed(only_quickly):
    assert verdict(contest(SkipsWhenAnswered(only_quickly=only_quickly))[0]) == (Status.CHEAT, Layer.FRESH)


def test_a_kernel_that_looks_at_everything_before_it_leaves_its_answer_alone_shows_in_what_it_costs():
    assert verdict(contest(SkipsWhenAnswered(looks_at_all=True))[0]) == (Status.CHEAT, Layer.FRESH)


def test_a_kernel_that_leaves_its_answer_alone_in_blocks_only_shows_in_what_it_costs():
    measured, _ = contest(SkipsWhenAnswered(looks_at_all=True, only_quickly=True))
    status, layer = verdict(measured)
    assert status is Status.CHEAT
    assert layer in (Layer.FRESH, Layer.CLOCKS)


class FirstCalls:
    """Right for so many calls, then it leaves its output as it is."""

    def __init__(self, right):
        self.right = right

    def __call__(self, x, y, moment):
        if moment.count > self.right:
            return READ_NS
        return honest(x, y, moment)


@pytest.mark.parametrize("right", [3, 17, 41, 200])
def test_a_kernel_that_is_right_for_so_many_calls_is_wrong_after_them(right):
    status, layer = verdict(contest(FirstCalls(right))[0])
    assert status is not Status.PASSED
    assert layer in (Layer.POISON, Layer.FRESH)


class SkipsInBlocks:
    """Right in every call that is looked at, and idle in every ``nth`` of those that follow another at once."""

    def __init__(self, nth):
        self.nth, self.since = nth, 0

    def __call__(self, x, y, moment):
        self.since = self.since + 1 if moment.pause_ns < 10_000 else 0
        if self.since % self.nth == self.nth - 1:
            return 0.0
        return honest(x, y, moment)


@pytest.mark.parametrize("nth", [3, 5, 8])
def test_who_skips_a_part_of_a_block_is_accused_or_gets_the_claim_of_its_fresh_calls(nth):
    true = claim([contest(honest)[0]], TimingSettings(), PHYSICS, 1, threads=1).speedups[0].ratio_ppm

    measured, _ = contest(SkipsInBlocks(nth))
    made = claim([measured], TimingSettings(), PHYSICS, 1, threads=1)

    assert made.status is Status.CHEAT or made.speedups[0].ratio_ppm < 1.07 * true


def test_an_output_that_changes_after_the_call_had_returned_is_late():
    def rewrite(y):
        y[0, 0] *= 1.000001

    assert verdict(contest(honest, late=rewrite)[0]) == (Status.CHEAT, Layer.LATE)


@pytest.mark.parametrize("clocks", [{"runner_share": 0.2}, {"runner_share": 1.3}, {"cpu_share": 2.0}])
def test_clocks_that_cannot_all_be_true_are_a_failure_with_a_name(clocks):
    assert verdict(contest(honest, **clocks)[0]) == (Status.CHEAT, Layer.CLOCKS)


def noisy(x, y, moment):
    """Every call takes between three quarters and four thirds of the same time."""
    softmax(x, y)
    return WORK_NS * float(np.exp(np.random.default_rng(moment.count).uniform(-0.25, 0.25)))


def cold(x, y, moment):
    """The first call after a pause is half as dear again: caches."""
    softmax(x, y)
    return WORK_NS * (1.5 if moment.pause_ns > 10_000 else 1.0)


@pytest.mark.parametrize("kernel", [honest, noisy, cold])
def test_honest_kernels_pass_at_the_third_level(kernel):
    measured, _ = contest(kernel)
    made = claim([measured], TimingSettings(), PHYSICS, 1, threads=1)
    assert (made.status, made.trust) == (Status.PASSED, Trust.L3), made.evidence
    assert measured.followed > 5
    assert measured.missed == 0


def test_every_call_is_in_the_ledger_and_verified_ones_say_so():
    measured, ledger = contest(honest)
    mine = [call for call in ledger.calls if call.contestant == CANDIDATE]
    blocks = [call for call in mine if call.stage is Stage.BLOCK]
    assert len(blocks) == len(measured.samples[CANDIDATE].block_ns) == 22
    assert sum(call.verified for call in blocks) > 15  # else one more call was, after a flip too near the end
    assert sum(call.verified for call in mine) == measured.verified
    assert {call.contestant for call in ledger.calls} == {CANDIDATE, "eager", "compiled"}
    first = [call.case for call in mine if call.first_use]
    assert len(first) == len(set(first))


def test_neither_the_number_of_calls_nor_their_order_repeats():
    first, second = (
        [(call.stage, call.calls) for call in contest(honest)[1].calls if call.contestant == CANDIDATE]
        for _ in range(2)
    )
    assert first != second


def test_an_operator_that_works_in_place_gets_one_call_for_every_load():
    _, ledger = contest(honest, contract=Contract(mutates=(0,)))
    assert {call.calls for call in ledger.calls} == {1}


def test_buffers_hold_what_the_test_says():
    assert ROWS * COLUMNS > 200  # the flips' positions
