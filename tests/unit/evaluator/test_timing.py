"""The contest tells kernels that work from kernels that remember, whatever it is that they remember by."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc import recall, timing
from evaluator_svc.claims import OVERHEAD_MAX_NS, SETTLE_SLACK_NS, Physics, claim, overhead_ns
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.ledger import Stage
from evaluator_svc.roofline import Floors
from evaluator_svc.samples import CANDIDATE
from evaluator_svc.settings import TimingSettings
from shared.contract import Contract
from shared.events import Status, Trust
from tests.unit.evaluator import references
from tests.unit.evaluator.contest import COLUMNS, ROWS, WORK_NS, Baselines, contest, honest, softmax

READ_NS = 10_000.0
"""What it costs to compare or to copy everything."""
NO_FLOOR = Floors(memory_ns=0.0, compute_ns=0.0, level="L3")
PHYSICS = Physics(floors=NO_FLOOR, written=NO_FLOOR)


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


@pytest.mark.parametrize("key", ["bytes", "rounded values"])
def test_an_answer_kept_by_all_of_the_input_is_right_but_shows_in_what_it_costs(key):
    assert verdict(contest(FirstAnswer(CONTENTS[key]))[0]) == (Status.CHEAT, Layer.FRESH)


def ratio(kernel, **named):
    """What is claimed over eager, as a share of what an honest kernel gets."""
    found = [claim([contest(one, **named)[0]], TimingSettings(), PHYSICS, 1, threads=1) for one in (kernel, honest)]
    assert [made.status for made in found] == [Status.PASSED] * 2, found[0].evidence
    return found[0].speedups[0].ratio_ppm / found[1].speedups[0].ratio_ppm


def test_an_answer_kept_by_all_of_the_input_at_an_address_is_hardly_ever_asked_for_again():
    made = claim([contest(FirstAnswer(CONTENTS["bytes at an address"]))[0]], TimingSettings(), PHYSICS, 1, threads=1)
    honestly = claim([contest(honest)[0]], TimingSettings(), PHYSICS, 1, threads=1)
    assert made.status is Status.CHEAT or made.speedups[0].ratio_ppm < 1.1 * honestly.speedups[0].ratio_ppm


class KeepsAPart:
    """Compares the first rows with all that it has had, and computes the others: a fifth of the work is saved."""

    def __init__(self):
        self.kept = set()

    def __call__(self, x, y, moment):
        softmax(x, y)
        known = x[:2].tobytes() in self.kept
        self.kept.add(x[:2].tobytes())
        return 0.8 * WORK_NS if known else WORK_NS


def test_who_keeps_a_part_of_the_answers_gets_the_claim_of_calls_on_new_values():
    assert ratio(KeepsAPart()) < 1.07


class SkipsWhenAnswered:
    """Works only where its output does not hold its last answer: poison has it work, repetition not (H-NaN)."""

    def __init__(self):
        self.answers = {}

    def __call__(self, x, y, moment):
        kept = self.answers.get(moment.address)
        if kept is not None and np.array_equal(kept, y):
            return READ_NS
        softmax(x, y)
        self.answers[moment.address] = y.copy()
        return WORK_NS


def test_a_kernel_that_leaves_its_own_answer_alone_never_finds_it():
    assert ratio(SkipsWhenAnswered()) < 1.05


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


@pytest.mark.parametrize("nth", [2, 3, 5, 8])
def test_who_skips_a_part_of_a_block_leaves_the_poison_there(nth):
    status, layer = verdict(contest(SkipsInBlocks(nth))[0])
    assert status is not Status.PASSED
    assert layer in (Layer.POISON, Layer.FRESH)


class SkipsTheFirstHalf:
    """Of each block: it counts the calls since a pause, and knows how many the last block had."""

    def __init__(self):
        self.since = self.last = 0

    def __call__(self, x, y, moment):
        if moment.pause_ns > 10_000:
            self.last, self.since = self.since, 0
        self.since += 1
        return 0.0 if self.since <= self.last / 2 else honest(x, y, moment)


def test_who_skips_the_first_half_of_each_block_leaves_the_poison_there():
    status, layer = verdict(contest(SkipsTheFirstHalf())[0])
    assert status is not Status.PASSED
    assert layer in (Layer.POISON, Layer.FRESH)


class ComputesAllAtOnce:
    """Every set that it knows, in the first call of a block; the others then need nothing."""

    def __call__(self, x, y, moment):
        if moment.pause_ns < 10_000:
            return READ_NS
        process = moment.process
        process.outputs[:] = [references.softmax(one) for one in process.inputs]
        return process.sets * WORK_NS


def test_who_computes_all_sets_in_the_first_call_of_a_block_shows_in_blocks_of_other_lengths():
    status, layer = verdict(contest(ComputesAllAtOnce())[0])
    assert status is Status.CHEAT
    assert layer in (Layer.CLOCKS, Layer.FRESH)


class WarmUpsOnly:
    """Right until it has seen blocks of as many calls as there are sets, and sets it has seen; then it replays."""

    def __init__(self):
        self.kept = {}

    def __call__(self, x, y, moment):
        if moment.count > 60 and moment.address in self.kept:
            y[:] = self.kept[moment.address]
            return READ_NS
        softmax(x, y)
        self.kept[moment.address] = y.copy()
        return WORK_NS


def test_who_takes_the_first_blocks_for_a_warm_up_is_wrong_in_the_others():
    assert verdict(contest(WarmUpsOnly())[0]) == (Status.CHEAT, Layer.FRESH)


def test_an_output_that_changes_after_the_call_had_returned_is_late():
    def rewrite(outputs):
        outputs[:, 0, 0] *= 1.000001

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


def test_clocks_may_say_what_they_like_of_an_empty_command_but_no_more_is_taken_off_than_others_take():
    measured, _ = contest(honest, settle_ns=25_000)
    measured.empty_ns = [95_000.0] * len(measured.empty_ns)
    assert overhead_ns(measured.empty_ns, measured.settle_ns) == 2 * 25_000 + SETTLE_SLACK_NS
    assert overhead_ns([10**9], []) == OVERHEAD_MAX_NS


def test_every_block_is_in_the_ledger_and_verified():
    measured, ledger = contest(honest)
    mine = [call for call in ledger.calls if call.contestant == CANDIDATE]
    blocks = [call for call in mine if call.stage is Stage.BLOCK]
    assert len(blocks) == len(measured.samples[CANDIDATE].block_ns) == 22
    assert all(call.verified for call in mine)
    assert sum(call.calls for call in mine) == measured.verified
    assert {call.contestant for call in ledger.calls} == {CANDIDATE, "eager", "compiled"}
    assert all(call.first_use for call in mine if call.stage is Stage.FRESH)
    assert len(measured.novelty) >= 4


def test_every_call_of_a_block_has_other_values_than_the_one_before_it_at_the_same_address():
    last, same = {}, []

    def watching(x, y, moment):
        same.append(np.array_equal(last.get(moment.address, ()), x))
        last[moment.address] = x.copy()
        return honest(x, y, moment)

    contest(watching)
    assert np.mean(same) < 0.2


def test_the_baselines_run_over_sets_of_their_own_that_were_filled_and_cooled():
    baselines = Baselines()
    contest(honest, baselines=baselines)
    assert len(baselines.cooled) == len(baselines.runs)
    assert all(calls <= span <= baselines.filled <= baselines.sets for _, calls, _, span in baselines.runs)
    assert len({first for _, _, first, span in baselines.runs if span > 1}) > 1


def test_neither_the_number_of_calls_nor_their_order_repeats():
    first, second = (
        [(call.stage, call.calls) for call in contest(honest)[1].calls if call.contestant == CANDIDATE]
        for _ in range(2)
    )
    assert first != second


def test_an_operator_that_works_in_place_gets_one_call_for_every_set():
    _, ledger = contest(honest, contract=Contract(mutates=(0,)))
    assert max(call.calls for call in ledger.calls if call.contestant == CANDIDATE) <= 24


def test_buffers_hold_what_the_test_says():
    assert ROWS * COLUMNS > 200  # the flips' positions


def slow_to_begin(x, y, moment):
    """The first call of a block waits for its launch, or for an interpreter's code; nothing is remembered."""
    softmax(x, y)
    return WORK_NS * (5.0 if moment.pause_ns > 10_000 else 1.0)


SHORT_IS_DEARER = [{"pipelined": True, "first_calls_dearer": True}, {"first_calls_dearer": True}]


@pytest.mark.parametrize("how", SHORT_IS_DEARER)
def test_where_calls_of_short_blocks_are_dearer_new_draws_are_compared_with_as_many_known_ones(how):
    measured, _ = contest(slow_to_begin, **how)
    assert len(measured.novelty) >= 4
    assert all(pair.new.calls == pair.known.calls for pair in measured.novelty)
    assert claim([measured], TimingSettings(), PHYSICS, 1, threads=1).status is Status.PASSED


@pytest.mark.parametrize("how", SHORT_IS_DEARER)
@pytest.mark.parametrize("key", ["bytes", "rounded values"])
def test_an_answer_kept_by_all_of_the_input_shows_there_too(key, how):
    assert verdict(contest(FirstAnswer(CONTENTS[key]), **how)[0]) == (Status.CHEAT, Layer.FRESH)


def test_what_a_device_is_waited_for_belongs_to_the_baselines_blocks_as_to_the_candidates():
    plain, waiting = (contest(honest, pipelined=True, device_waits_ns=wait)[0] for wait in (0, 5 * WORK_NS))
    medians = [one.samples["eager"].median_ns for one in (plain, waiting)]
    assert medians[1] > 1.05 * medians[0]
    assert waiting.pipelined


@pytest.mark.parametrize("how", [{}, *SHORT_IS_DEARER])
def test_pairs_that_the_lot_left_out_are_measured_in_the_end(monkeypatch, how):
    monkeypatch.setattr(timing, "NOVEL_CHANCE", 0.0)
    measured, _ = contest(FirstAnswer(CONTENTS["bytes"]), **how)
    assert len(measured.novelty) == recall.FEWEST * (2 if how else 1)
    assert verdict(measured) == (Status.CHEAT, Layer.FRESH)


class LateMemory(FirstAnswer):
    """Works in the first calls after a pause, and in the others only on what it has not had."""

    def __init__(self, honest_calls):
        super().__init__(CONTENTS["bytes"])
        self.honest_calls, self.calls = honest_calls, 0

    def __call__(self, x, y, moment):
        self.calls = 1 if moment.pause_ns > 10_000 else self.calls + 1
        cost = super().__call__(x, y, moment)
        return WORK_NS if self.calls <= self.honest_calls else cost


@pytest.mark.parametrize("how", [{}, *SHORT_IS_DEARER])
@pytest.mark.parametrize("honest_calls", [3, 6])
def test_who_works_in_the_first_calls_of_a_block_and_remembers_in_the_others_is_accused(honest_calls, how):
    # By new values, or because calls of long blocks are cheaper than commands explain.
    status, layer = verdict(contest(LateMemory(honest_calls), **how)[0])
    assert status is Status.CHEAT
    assert layer in (Layer.FRESH, Layer.CLOCKS)


@pytest.mark.parametrize("how", SHORT_IS_DEARER)
@pytest.mark.parametrize("kernel", [honest, slow_to_begin])
def test_whose_calls_scatter_by_a_tenth_does_not_remember_for_it(kernel, how):
    found = [verdict(contest(kernel, jitter=0.1, **how)[0]) for _ in range(20)]
    assert found == [(Status.PASSED, None)] * 20
