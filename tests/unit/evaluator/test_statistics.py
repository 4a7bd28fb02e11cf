"""Intervals cover the truth, controls seldom cry wolf, drift divides out: on synthetic block times."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.statistics import paired_ratio, self_ratio, spread

ROUNDS, TRIALS, NOISE = 12, 200, 0.05


def blocks(generator, level, *, noise=NOISE, rounds=ROUNDS):
    return level * np.exp(noise * generator.standard_normal(rounds))


def test_the_interval_holds_the_true_ratio_at_about_its_stated_rate():
    generator, held = np.random.default_rng(1), 0
    for trial in range(TRIALS):
        found = paired_ratio(blocks(generator, 1.3), blocks(generator, 1.0), trial)
        held += found.low <= 1.3 <= found.high
    assert held / TRIALS > 0.90


def test_equal_contestants_are_seldom_called_different():
    generator, wins = np.random.default_rng(2), 0
    for trial in range(TRIALS):
        wins += paired_ratio(blocks(generator, 1.0), blocks(generator, 1.0), trial).low > 1.0
    assert wins / TRIALS < 0.05


def test_a_real_gain_is_found():
    generator, wins = np.random.default_rng(3), 0
    for trial in range(100):
        wins += paired_ratio(blocks(generator, 1.15), blocks(generator, 1.0), trial).low > 1.0
    assert wins >= 95


def test_drift_of_the_machine_divides_out():
    generator = np.random.default_rng(4)
    drift = np.linspace(1.0, 3.0, ROUNDS)
    found = paired_ratio(blocks(generator, 1.5, noise=0.01) * drift, blocks(generator, 1.0, noise=0.01) * drift, 1)
    assert found.low < 1.5 < found.high or abs(found.ratio - 1.5) < 0.02
    assert found.high - found.low < 0.1


def test_one_disturbed_round_moves_the_ratio_little():
    generator = np.random.default_rng(5)
    slow = blocks(generator, 1.0, noise=0.01)
    slow[3] *= 20
    assert paired_ratio(blocks(generator, 2.0, noise=0.01), slow, 1).ratio == pytest.approx(2.0, rel=0.02)


def test_the_a_a_control_accepts_steady_noise_and_refuses_a_machine_that_alternates():
    generator, alarms = np.random.default_rng(6), 0
    for trial in range(TRIALS):
        alarms += self_ratio(blocks(generator, 1.0), trial).beyond(0.05)
    assert alarms / TRIALS < 0.05
    alternating = np.array([1.0, 1.3] * (ROUNDS // 2)) * blocks(generator, 1.0, noise=0.01)
    assert self_ratio(alternating, 1).beyond(0.05)


def test_spread_is_the_relative_deviation_of_normal_noise():
    generator = np.random.default_rng(7)
    assert spread(100 * (1 + 0.1 * generator.standard_normal(20_000))) == pytest.approx(0.1, rel=0.05)


def test_the_same_seed_gives_the_same_interval():
    generator = np.random.default_rng(8)
    a, b = blocks(generator, 1.2), blocks(generator, 1.0)
    assert paired_ratio(a, b, 9) == paired_ratio(a, b, 9)


@pytest.mark.parametrize(("top", "bottom"), [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, 0.0], [1.0, 1.0])])
def test_times_that_allow_no_ratio_are_refused(top, bottom):
    with pytest.raises(ValueError, match="round|positive"):
        paired_ratio(top, bottom, 1)
