"""What block times allow to be claimed: forged clocks, memory of answers and noise do not become speedups."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc import claims
from evaluator_svc.claims import Physics
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.roofline import Floors
from evaluator_svc.samples import CANDIDATE, Block, Clocked, Measured, Novelty, Samples
from evaluator_svc.settings import TimingSettings
from shared.events import Status, Trust

SETTINGS = TimingSettings()
MS = 1_000_000.0


def physics(floor_ms=0.1):
    return Physics(
        floors=Floors(memory_ns=floor_ms * MS, compute_ns=0.0, level="L3"),
        written=Floors(memory_ns=floor_ms * MS / 2, compute_ns=0.0, level="L3"),
    )


SHORT, LONG = 4, 8


def measured(
    candidate=1.0,
    eager=2.0,
    compiled=1.5,
    *,
    seed=1,
    noise=0.02,
    runner_share=0.99,
    rounds=12,
    wave=None,
    first_only=0.0,
    cpu_share=0.98,
    new=(),
    off_calls_ms=0.0,
):
    """Levels in ms. ``first_only``: of a block beside its calls, in calls; ``new``: what calls on new values cost
    in times of known ones, by pairs of blocks.
    """
    generator = np.random.default_rng(seed)
    shape = np.ones(2 * rounds) if wave is None else np.resize(wave, 2 * rounds)
    lengths = [SHORT, LONG] * rounds

    def samples(level, constant=0.0):
        exact = level * MS * (1.0 + constant / np.array(lengths)) / (1.0 + constant / 6)
        times = exact * np.exp(noise * generator.standard_normal(2 * rounds)) * shape
        return Samples(
            calls=6,
            block_ns=[float(t) for t in times],
            lengths=lengths,
            own_block_ns=[float(t) for t in times],
        )

    found = {
        CANDIDATE: samples(candidate, first_only),
        "eager": samples(eager),
        "compiled": samples(compiled),
    }
    clocks = [
        Clocked(
            calls=n,
            controller_ns=round(n * t),
            runner_ns=round(n * t * runner_share),
            cpu_ns=round(n * t * cpu_share),
        )
        for n, t in zip(lengths, found[CANDIDATE].block_ns, strict=True)
    ]
    return Measured(
        samples=found,
        clocks=clocks,
        verified=rounds,
        empty_ns=[20_000.0] * rounds,
        novelty=[Novelty(new=_block(times * candidate), known=_block(candidate)) for times in new],
        off_calls_ns=off_calls_ms * MS,
    )


def _block(level):
    return Block(calls=SHORT, wall_ns=SHORT * level * MS, own_ns=SHORT * level * MS)


def claim(found, settings, physics, seed, *, threads=1):
    return claims.claim(found, settings, physics, seed, threads=threads)


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
    small = claim([measured(candidate=0.02, eager=0.04, compiled=0.05)], SETTINGS, physics(0.001), 1)
    assert small.status is Status.PASSED
    assert "dispatch" in evidence(small)
    assert "dispatch" not in evidence(claim([measured()], SETTINGS, physics(), 1))


def test_the_interval_of_a_final_measurement_holds_every_process():
    made = claim([measured(seed=1), measured(candidate=1.3, seed=2), measured(seed=3)], SETTINGS, physics(), 1)
    eager = next(s for s in made.speedups if s.baseline == "eager")
    assert eager.low_ppm <= 1_600_000
    assert len(made.timings[0].block_ns) == 72


def test_a_time_under_the_floor_is_a_cheat_with_both_numbers():
    made = claim([measured(candidate=0.05)], SETTINGS, physics(floor_ms=0.1), 1)
    assert (made.status, made.speedups, caught_by(made.evidence)) == (Status.CHEAT, (), Layer.FLOOR)
    assert evidence(made)["floor_ns"] == "100000"


def test_calls_that_only_work_on_new_values_are_a_cheat():
    made = claim([measured(candidate=0.2, new=[15.0] * 4)], SETTINGS, physics(), 1)
    assert (made.status, caught_by(made.evidence)) == (Status.CHEAT, Layer.FRESH)
    assert evidence(made)["new_values_ns"] == "3000000"
    assert evidence(made)["same_values_ns"] == "200000"


def test_a_kernel_that_saves_a_fifth_on_known_values_is_claimed_for_new_ones():
    made, plain = (claim([measured(new=new)], SETTINGS, physics(), 1) for new in ([1.25] * 8, [1.0] * 8))
    assert made.speedups[0].ratio_ppm == pytest.approx(plain.speedups[0].ratio_ppm / 1.25, rel=1e-3)
    assert "claimed_for_fresh_values" in evidence(made)
    assert "claimed_for_fresh_values" not in evidence(plain)


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


@pytest.mark.parametrize("new", [[3.0] * 3, [3.0] * 4 + [1.02] * 6, [1.45] * 8, [9.0, 9.0, 1.0, 1.0, 1.1]])
def test_few_slow_blocks_accuse_nobody(new):
    assert claim([measured(new=new)], SETTINGS, physics(), 1).status is Status.PASSED


@pytest.mark.parametrize("share", [0.5, 1.05])
def test_a_runner_whose_clock_disagrees_with_the_controllers_is_a_cheat(share):
    made = claim([measured(runner_share=share)], SETTINGS, physics(), 1)
    assert (made.status, caught_by(made.evidence)) == (Status.CHEAT, Layer.CLOCKS)
    assert "controller" in evidence(made)["clocks"]
    assert "runner" in evidence(made)["clocks"]


def test_work_in_the_first_call_of_a_block_alone_shows_in_the_slope():
    made = claim([measured(first_only=20.0)], SETTINGS, physics(), 1)
    assert (made.status, caught_by(made.evidence)) == (Status.CHEAT, Layer.CLOCKS)
    assert "slope" in evidence(made)["clocks"]


def test_a_dearer_first_call_of_a_block_is_honest():
    assert claim([measured(first_only=0.5)], SETTINGS, physics(), 1).status is Status.PASSED


def test_more_processor_time_than_wall_time_and_threads_allow_is_a_cheat():
    made = claim([measured(cpu_share=1.8)], SETTINGS, physics(), 1)
    assert (made.status, caught_by(made.evidence)) == (Status.CHEAT, Layer.CLOCKS)
    assert claim([measured(cpu_share=1.8)], SETTINGS, physics(), 1, threads=2).status is Status.PASSED


@pytest.mark.parametrize(
    "suspicious", [{"runner_share": 0.5}, {"cpu_share": 1.8}, {"new": [3.0] * 4}, {"first_only": 20.0}]
)
def test_nobody_is_accused_in_a_disturbed_moment(suspicious):
    made = claim([measured(wave=[1.0, 1.4], **suspicious)], SETTINGS, physics(), 1)
    assert (made.status, caught_by(made.evidence)) == (Status.NOISY, Layer.STATISTICS)


def test_a_time_that_the_way_to_the_kernel_hides_is_no_time():
    made = claim([measured(candidate=0.005)], SETTINGS, physics(floor_ms=0.0), 1)
    assert (made.status, caught_by(made.evidence)) == (Status.NOISY, Layer.STATISTICS)
    assert "resolution" in evidence(made)


def test_calls_that_what_a_block_takes_besides_hides_are_no_measurement():
    # Six calls of 1 ms; beside 30 ms they would have been cut off at a quarter of the block.
    made = claim([measured(off_calls_ms=30.0)], SETTINGS, physics(), 1)
    assert made.status is Status.NOISY
    assert "less than can be told" in evidence(made)["resolution"]
    assert claim([measured(off_calls_ms=0.6)], SETTINGS, physics(), 1).status is Status.PASSED
