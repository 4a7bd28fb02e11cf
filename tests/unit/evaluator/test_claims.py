"""What block times allow to be claimed: forged clocks, memory of answers and noise do not become speedups."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.claims import Physics, claim
from evaluator_svc.roofline import Floors
from evaluator_svc.settings import TimingSettings
from evaluator_svc.timing import CANDIDATE, Measured, Samples
from shared.events import Status, Trust

SETTINGS = TimingSettings()
MS = 1_000_000.0


def physics(floor_ms=0.1, traffic_ms=0.5):
    return Physics(
        floors=Floors(memory_ns=floor_ms * MS, compute_ns=0.0, level="L3"),
        written=Floors(memory_ns=floor_ms * MS / 2, compute_ns=0.0, level="L3"),
        memory_traffic_ns=traffic_ms * MS,
    )


def measured(
    candidate=1.0, eager=2.0, compiled=1.5, *, seed=1, noise=0.02, fresh=1.2, runner_share=0.99, rounds=12, wave=None
):
    generator = np.random.default_rng(seed)
    shape = np.ones(rounds) if wave is None else np.resize(wave, rounds)

    def samples(level, first):
        times = level * MS * np.exp(noise * generator.standard_normal(rounds)) * shape
        return Samples(calls=6, block_ns=[float(t) for t in times], fresh_ns=[first * level * MS] * rounds)

    found = {
        CANDIDATE: samples(candidate, fresh),
        "eager": samples(eager, 1.2),
        "compiled": samples(compiled, 1.2),
    }
    clocks = [(round(6 * t), round(6 * t * runner_share)) for t in found[CANDIDATE].block_ns]
    return Measured(samples=found, clocks=clocks, verified=rounds)


def evidence(made):
    return {entry.name: entry.value for entry in made.evidence}


def test_a_quiet_moment_gives_a_speedup_over_each_baseline_at_l3():
    made = claim([measured()], SETTINGS, physics(), 1)
    assert (made.status, made.trust) == (Status.PASSED, Trust.L3)
    found = {s.baseline: s for s in made.speedups}
    assert found["eager"].ratio_ppm == pytest.approx(2_000_000, rel=0.03)
    assert found["compiled"].low_ppm < 1_500_000 < found["compiled"].high_ppm
    assert [t.name for t in made.timings] == [CANDIDATE, "eager", "compiled"]


def test_the_speedup_of_a_small_operator_says_that_its_baselines_include_dispatch():
    small = claim([measured(candidate=0.02, eager=0.04, compiled=0.05)], SETTINGS, physics(0.001, 0.005), 1)
    assert small.status is Status.PASSED
    assert "dispatch" in evidence(small)
    assert "dispatch" not in evidence(claim([measured()], SETTINGS, physics(), 1))


def test_the_interval_of_a_final_measurement_holds_every_process():
    made = claim([measured(seed=1), measured(candidate=1.3, seed=2), measured(seed=3)], SETTINGS, physics(), 1)
    eager = next(s for s in made.speedups if s.baseline == "eager")
    assert eager.low_ppm <= 1_600_000
    assert len(made.timings[0].block_ns) == 36


def test_a_time_under_the_floor_is_a_cheat_with_both_numbers():
    made = claim([measured(candidate=0.05)], SETTINGS, physics(floor_ms=0.1), 1)
    assert (made.status, made.speedups) == (Status.CHEAT, ())
    assert evidence(made)["floor_ns"] == "100000"


def test_calls_that_only_work_on_fresh_values_are_a_cheat():
    made = claim([measured(candidate=0.2, fresh=15.0)], SETTINGS, physics(traffic_ms=0.1), 1)
    assert made.status is Status.CHEAT
    assert evidence(made)["repeated_call_ns"] != evidence(made)["fresh_call_ns"]


def test_slower_first_calls_that_memory_explains_are_honest():
    assert claim([measured(candidate=0.2, fresh=4.0)], SETTINGS, physics(traffic_ms=0.5), 1).status is Status.PASSED


def test_a_machine_that_alternates_is_noisy_and_gives_no_speedup():
    made = claim([measured(wave=[1.0, 1.4])], SETTINGS, physics(), 1)
    assert (made.status, made.speedups) == (Status.NOISY, ())
    assert "a_a_eager" in evidence(made)


def test_scattered_baseline_blocks_are_noisy():
    made = claim([measured(noise=0.6)], SETTINGS, physics(), 1)
    assert made.status is Status.NOISY


def test_a_clear_loser_needs_no_quiet_moment_but_gets_no_l3():
    made = claim([measured(candidate=20.0, noise=0.4, seed=5)], SETTINGS, physics(), 1)
    assert (made.status, made.trust) == (Status.PASSED, Trust.L2)


@pytest.mark.parametrize("share", [0.5, 1.05])
def test_clocks_that_disagree_keep_trust_at_l2(share):
    made = claim([measured(runner_share=share)], SETTINGS, physics(), 1)
    assert (made.status, made.trust) == (Status.PASSED, Trust.L2)
    assert "disagree" in evidence(made)["clocks"]
