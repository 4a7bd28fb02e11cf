"""What others on the machine, and the worker's own noise, do to a claim."""

from __future__ import annotations

from dataclasses import replace

from evaluator_svc.claims import claim
from evaluator_svc.layers import CAUGHT_BY, Layer
from evaluator_svc.settings import TimingSettings
from evaluator_svc.statistics import DELTA_UNKNOWN
from shared.events import PPM, Entry, Status
from tests.unit.evaluator.test_claims import measured, physics

BESIDE = Entry(name="contention", value="foreign 0.500, limit 0.15; foreign 0.5, waiting unknown")
QUIET = Entry(name="contention", value="foreign 0, waiting 0.001, steal unknown")
SETTINGS = TimingSettings()


def claimed(*processes, **named):
    return claim(processes, SETTINGS, physics(), 1, threads=1, **named)


def test_a_measurement_beside_which_others_computed_is_noisy_and_names_its_layer_and_what_was_seen():
    made = claimed(replace(measured(), watched=(BESIDE,), disturbed=(BESIDE,)))
    assert (made.status, made.speedups) == (Status.NOISY, ())
    assert made.evidence[0] == Entry(name=CAUGHT_BY, value=Layer.STATISTICS.value)
    assert BESIDE in made.evidence


def test_one_disturbed_process_of_several_is_enough():
    assert claimed(measured(), replace(measured(seed=2), disturbed=(BESIDE,))).status is Status.NOISY


def test_a_clear_loser_is_told_so_whatever_others_do():
    assert claimed(replace(measured(candidate=20.0), disturbed=(BESIDE,))).status is Status.PASSED


def test_a_quiet_measurement_says_which_signals_there_were():
    made = claimed(replace(measured(), watched=(QUIET,)))
    assert made.status is Status.PASSED
    assert QUIET in made.evidence


def test_a_gain_below_the_workers_noise_floor_is_measured_and_not_proved():
    small = measured(candidate=0.97, eager=1.0, compiled=1.0, noise=0.003)
    made = claimed(small, delta=0.05)
    assert [s.delta_ppm for s in made.speedups] == [50_000, 50_000]
    assert all(s.low_ppm > PPM and not s.proves_gain for s in made.speedups)
    assert all(s.proves_gain for s in claimed(small, delta=0.005).speedups)


def test_a_worker_that_does_not_know_its_noise_claims_nothing_small():
    small = measured(candidate=0.985, eager=1.0, compiled=1.0, noise=0.001)
    made = claimed(small)
    assert all(s.delta_ppm == PPM * DELTA_UNKNOWN and not s.proves_gain for s in made.speedups)


def test_a_clear_loser_whose_clock_was_forged_is_asked_again_in_a_quiet_moment_and_not_passed():
    made = claimed(replace(measured(candidate=20.0, runner_share=0.0), disturbed=(BESIDE,)))
    assert made.status is Status.NOISY
    assert any(entry.name == "clocks" for entry in made.evidence)
