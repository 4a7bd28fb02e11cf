"""The stopping rule ends early where the numbers are clear, and never makes "faster" more frequent than promised."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.sequential import Decision, Stopping
from evaluator_svc.statistics import DELTA_MIN, FEWEST_ROUNDS, pooled, sequence

RULE = Stopping(fewest=FEWEST_ROUNDS, most=48, delta=DELTA_MIN)


def run(rule, draw, generator):
    """Rounds one after the other, as a contest has them; returns the decision and the log-ratios."""
    logs = []
    while True:
        logs.append(draw(generator))
        decision = rule.look({"eager": logs})
        if decision is not None:
            return decision, logs


def around(gain, noise):
    return lambda generator: np.log(gain) + noise * generator.standard_normal()


@pytest.mark.parametrize(
    ("gain", "noise", "decision"),
    [
        (1.5, 0.02, Decision.FASTER),
        (0.7, 0.02, Decision.SLOWER),
        (1.0, 0.002, Decision.PRECISE),
        (0.1, 0.02, Decision.HOPELESS),
        (1.0, 0.2, Decision.EXHAUSTED),
    ],
)
def test_each_decision_is_reached_in_its_case(gain, noise, decision):
    assert run(RULE, around(gain, noise), np.random.default_rng(1))[0] is decision


def test_a_clear_gain_costs_the_fewest_rounds_and_a_hopeless_candidate_fewer():
    generator = np.random.default_rng(2)
    assert len(run(RULE, around(1.5, 0.02), generator)[1]) == FEWEST_ROUNDS
    assert len(run(RULE, around(0.1, 0.02), generator)[1]) == RULE.hopeless_rounds


def test_a_gain_below_the_noise_floor_of_the_worker_is_not_called_faster():
    rule = Stopping(fewest=FEWEST_ROUNDS, most=48, delta=0.03)
    decision, logs = run(rule, around(1.02, 0.003), np.random.default_rng(3))
    assert decision is not Decision.FASTER
    assert pooled([logs], 1).low <= 1.0 + rule.delta


def test_measuring_goes_on_until_every_baseline_is_settled():
    generator = np.random.default_rng(4)
    clear, open_ = list(np.log(1.5) + 0.01 * generator.standard_normal(12)), list(0.05 * generator.standard_normal(12))
    assert RULE.look({"eager": clear}) is Decision.FASTER
    assert RULE.look({"eager": clear, "compiled": open_}) is None


@pytest.mark.parametrize("noise", [0.003, 0.02, 0.1])
def test_equal_kernels_are_called_faster_in_fewer_than_one_of_a_hundred_measurements(noise):
    """Three fresh processes, each stopped by the rule, as a final measurement; no noise floor to help."""
    generator, wins, trials = np.random.default_rng(5), 0, 300
    rule = Stopping(fewest=FEWEST_ROUNDS, most=32, delta=0.0)
    for trial in range(trials):
        processes = [run(rule, around(1.0, noise), generator)[1] for _ in range(3)]
        if sequence(np.concatenate(processes)).low > 1.0 + rule.delta:  # pooled, it is no narrower
            wins += pooled(processes, trial).low > 1.0 + rule.delta
    assert wins / trials < 0.01


@pytest.mark.parametrize("heavy_tailed", [False, True])
def test_a_slowdown_of_two_per_cent_is_called_slower_in_95_of_100_measurements(heavy_tailed):
    generator, losses, trials = np.random.default_rng(6), 0, 200
    for _ in range(trials):
        noise = (lambda g: g.standard_t(2)) if heavy_tailed else (lambda g: g.standard_normal())
        decision, _ = run(RULE, lambda g, n=noise: np.log(1 / 1.02) + 0.01 * n(g), generator)
        losses += decision is Decision.SLOWER
    assert losses / trials >= 0.95


@pytest.mark.parametrize(("fewest", "most", "delta"), [(0, 4, 0.0), (5, 4, 0.0), (1, 4, -0.1)])
def test_a_rule_that_makes_no_sense_is_refused(fewest, most, delta):
    with pytest.raises(ValueError, match="expected"):
        Stopping(fewest=fewest, most=most, delta=delta)
