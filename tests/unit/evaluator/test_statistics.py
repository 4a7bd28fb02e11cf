"""Intervals hold the truth at their stated rate at every look, and drift divides out: simulated."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.statistics import (
    A_A_FEWEST,
    DELTA_MIN,
    DELTA_UNKNOWN,
    ERROR_PER_SIDE,
    FEWEST_ROUNDS,
    agreeing_needed,
    bootstrap,
    log_ratios,
    noise_floor,
    pooled,
    self_ratio,
    sequence,
    spread,
)

MOST = 48
TRIALS = 4000


def normal(generator, shape):
    return 0.02 * generator.standard_normal(shape)


def heavy(generator, shape):
    """Student's t with one and a half degrees of freedom: no variance at all."""
    return 0.01 * generator.standard_t(1.5, shape)


def skewed(generator, shape):
    """Of median 0, with a long tail to one side only."""
    return 0.02 * (generator.lognormal(0.0, 1.0, shape) - 1.0)


def bursts(generator, shape):
    """Most rounds are quiet; for stretches of ten, somebody else computes."""
    trials, rounds = shape
    busy = np.repeat(generator.random((trials, rounds // 10 + 1)) < 0.2, 10, axis=1)[:, :rounds]
    return generator.standard_normal(shape) * np.where(busy, 0.3, 0.005)


NOISES = (normal, heavy, skewed, bursts)


def refuted_ever(logs, truth=0.0):
    """Share of trials in which any look put the truth below, and above, the interval."""
    trials, rounds = logs.shape
    below, above = np.zeros(trials, bool), np.zeros(trials, bool)
    for n in range(1, rounds + 1):
        needed = agreeing_needed(n)
        if needed is not None:
            below |= (logs[:, :n] > truth).sum(axis=1) >= needed
            above |= (logs[:, :n] < truth).sum(axis=1) >= needed
    return below.mean(), above.mean()


def binomial_slack(rate, trials):
    """Three standard errors."""
    return rate + 3 * (rate * (1 - rate) / trials) ** 0.5


@pytest.mark.parametrize("noise", NOISES)
def test_looking_after_every_round_errs_no_more_often_than_stated(noise):
    logs = noise(np.random.default_rng(1), (TRIALS, MOST))
    assert max(refuted_ever(logs)) <= binomial_slack(ERROR_PER_SIDE, TRIALS)


def test_looking_after_every_round_at_an_ordinary_interval_errs_several_times_as_often():
    """What the sequence is for: the sign test at the same level, looked at again and again, keeps no promise."""
    logs = normal(np.random.default_rng(2), (TRIALS, MOST))
    wins = np.zeros(TRIALS, bool)
    for n in range(FEWEST_ROUNDS, MOST + 1):
        fair = np.random.default_rng(n).binomial(n, 0.5, 200_000)
        wins |= (logs[:, :n] > 0).sum(axis=1) > np.quantile(fair, 1 - ERROR_PER_SIDE)
    assert wins.mean() > 2 * ERROR_PER_SIDE


def test_the_percentile_bootstrap_of_a_median_covers_less_than_it_states_and_the_sequence_no_less():
    """Over 12 to 20 rounds the one holds the truth in 93 of 100 trials rather than in 95."""
    generator, boot, bets, trials = np.random.default_rng(3), 0, 0, 1200
    for trial in range(trials):
        logs = normal(generator, (12, 14, 16, 18, 20)[trial % 5])
        found = bootstrap(logs, trial, confidence=0.95)
        boot += found.low <= 1.0 <= found.high
        found = sequence(logs)
        bets += found.low <= 1.0 <= found.high
    assert boot / trials < 0.945
    assert bets / trials >= 1 - 2 * ERROR_PER_SIDE


def test_drift_that_is_linear_over_a_round_divides_out():
    clock = iter(np.exp(np.linspace(0.0, 1.0, 40)))
    a, b = [], []
    for _ in range(10):
        for name in "ABBA":
            (a if name == "A" else b).append((1.5 if name == "A" else 1.0) * next(clock))
    assert log_ratios(a, b) == pytest.approx(np.log(1.5))


def test_drift_that_is_not_linear_is_a_fair_coin_because_the_order_is_drawn():
    generator, wins, trials = np.random.default_rng(4), 0, 1000
    for _ in range(trials):
        wave = np.exp(0.3 * np.sin(np.arange(4 * 20) * 0.9))  # in step with the rounds, nearly
        a, b = [], []
        for turn in range(20):
            first = generator.random() < 0.5
            for place, name in enumerate("ABBA" if first else "BAAB"):
                (a if name == "A" else b).append(wave[4 * turn + place])
        wins += sequence(log_ratios(a, b)).low > 1.0
    assert wins / trials <= binomial_slack(ERROR_PER_SIDE, trials)


def test_one_disturbed_round_moves_the_ratio_little():
    logs = np.log(2.0) + 0.01 * np.random.default_rng(5).standard_normal(12)
    logs[3] = np.log(40.0)
    assert sequence(logs).ratio == pytest.approx(2.0, rel=0.02)


def test_fewer_rounds_than_the_error_rate_allows_prove_no_gain_and_bound_a_loss_by_what_was_seen():
    found = sequence(np.log([3.0] * (FEWEST_ROUNDS - 1)))
    assert (found.low, found.high) == (1.0, pytest.approx(3.0))
    assert sequence(np.log([3.0] * FEWEST_ROUNDS)).low == pytest.approx(3.0)
    lost = sequence(np.log([0.2, 0.3, 0.25]))
    assert (lost.low, lost.high) == (pytest.approx(0.2), pytest.approx(0.3))


def test_a_round_that_was_not_finished_is_left_out():
    assert log_ratios([2.0, 2.0, 9.0], [1.0, 1.0, 1.0]) == pytest.approx(np.log([2.0]))


def test_a_gain_that_processes_disagree_on_has_an_interval_that_holds_each_of_them():
    generator = np.random.default_rng(6)
    processes = [np.log(ratio) + 0.002 * generator.standard_normal(12) for ratio in (1.10, 1.10, 0.99)]
    found = pooled(processes, 1)
    assert found.low < 0.995
    assert found.ratio == pytest.approx(1.10, rel=0.01)
    assert pooled(processes, 1) == pooled(processes, 1)


def test_processes_that_agree_prove_their_gain():
    generator = np.random.default_rng(7)
    processes = [np.log(1.03) + 0.004 * generator.standard_normal(12) for _ in range(3)]
    assert pooled(processes, 1).low > 1.02


def test_the_a_a_control_accepts_steady_noise_and_refuses_a_machine_that_alternates():
    generator, alarms, trials = np.random.default_rng(8), 0, 200
    for trial in range(trials):
        alarms += self_ratio(np.exp(0.05 * generator.standard_normal(24)), trial).beyond(0.05)
    assert alarms / trials < 0.05
    alternating = np.array([1.0, 1.3] * 12) * np.exp(0.01 * generator.standard_normal(24))
    assert self_ratio(alternating, 1).beyond(0.05)


def test_spread_is_the_relative_deviation_of_normal_noise():
    generator = np.random.default_rng(9)
    assert spread(100 * (1 + 0.1 * generator.standard_normal(20_000))) == pytest.approx(0.1, rel=0.05)


def test_a_worker_that_has_not_measured_its_own_noise_needs_a_larger_gain():
    assert noise_floor([]) == DELTA_UNKNOWN
    assert noise_floor([0.001] * (A_A_FEWEST - 1)) == DELTA_UNKNOWN
    assert noise_floor([0.001] * A_A_FEWEST) == DELTA_MIN
    assert noise_floor([0.001] * 19 + [-0.05]) == pytest.approx(np.expm1(0.05))


@pytest.mark.parametrize(("top", "bottom"), [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, 0.0], [1.0, 1.0])])
def test_times_that_allow_no_ratio_are_refused(top, bottom):
    with pytest.raises(ValueError, match="round|positive"):
        log_ratios(top, bottom)
