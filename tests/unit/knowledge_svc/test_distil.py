"""Skills as claims: what evidence supports, what refutes, and what must not matter."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge_svc import distil
from knowledge_svc.observations import Observation, SkillContext
from shared.events import PPM, Bound, SkillStatus, Status

ABOUT = SkillContext(
    move="reduction:accumulators=4", operator_class="reduction", chip="cpu-x86_64", language="cpp", bound=Bound.LATENCY
)


def seen(n: int, ratio: float | None, *, search: str = "s1", sigma: float = 0.01) -> Observation:
    """The ``n``-th pair of kernels, in which the child took ``ratio`` of its parent's time; None: the child failed."""
    return Observation(
        candidate_id=f"c{n}",
        search_id=search,
        parent_kernel_id=f"p{n}",
        kernel_id=f"k{n}",
        status=Status.WRONG_RESULT if ratio is None else Status.PASSED,
        log_ratio=0.0 if ratio is None else math.log(ratio),
        sigma=0.0 if ratio is None else sigma,
    )


observations = st.lists(
    st.builds(
        seen,
        st.integers(0, 30),
        st.none() | st.floats(0.2, 5.0),
        search=st.sampled_from(["s1", "s2", "s3"]),
        sigma=st.floats(0.0, 0.3),
    ),
    max_size=12,
    unique_by=lambda o: o.candidate_id,
)


def test_one_good_measurement_is_a_hypothesis():
    skill = distil.distil(ABOUT, [seen(1, 0.5)])
    assert skill.status is SkillStatus.HYPOTHESIS
    assert skill.evidence_for == ("c1",)


def test_three_pairs_from_two_searches_support_a_claim():
    skill = distil.distil(ABOUT, [seen(1, 0.70), seen(2, 0.72, search="s2"), seen(3, 0.69)])
    assert skill.status is SkillStatus.SUPPORTED
    assert skill.low_ppm < skill.ratio_ppm < skill.high_ppm < PPM
    assert "multiplies time by 0.7" in skill.statement


def test_three_pairs_of_one_search_do_not_yet_support_a_claim_and_five_do():
    assert distil.distil(ABOUT, [seen(n, 0.7) for n in range(3)]).status is SkillStatus.HYPOTHESIS
    assert distil.distil(ABOUT, [seen(n, 0.7) for n in range(5)]).status is SkillStatus.SUPPORTED


def test_measuring_one_pair_again_is_no_independent_evidence():
    again = [replace(seen(1, 0.7), candidate_id=f"again{n}", search_id=f"s{n}") for n in range(6)]
    assert distil.distil(ABOUT, again).status is SkillStatus.HYPOTHESIS


def test_a_move_that_slows_kernels_down_is_retracted():
    skill = distil.distil(ABOUT, [seen(n, 1.2) for n in range(5)])
    assert skill.status is SkillStatus.RETRACTED
    assert len(skill.evidence_against) == 5


def test_a_supported_claim_is_retracted_by_enough_counter_evidence():
    early = [seen(n, 0.9) for n in range(5)]
    assert distil.distil(ABOUT, early).status is SkillStatus.SUPPORTED
    late = [seen(100 + n, 1.15, search="s2") for n in range(40)]
    assert distil.distil(ABOUT, [*early, *late]).status is SkillStatus.RETRACTED


def test_a_move_that_mostly_breaks_kernels_is_retracted_whatever_the_survivors_gain():
    skill = distil.distil(ABOUT, [seen(1, 0.5), *(seen(n, None) for n in range(2, 7))])
    assert skill.status is SkillStatus.RETRACTED
    assert "5 attempts failed (WRONG_RESULT)" in skill.statement


def test_results_that_scatter_widen_the_interval():
    steady = distil.distil(ABOUT, [seen(n, 0.8) for n in range(6)])
    wild = distil.distil(ABOUT, [seen(n, 0.8 * (1.4 if n % 2 else 1 / 1.4)) for n in range(6)])
    assert wild.high_ppm - wild.low_ppm > 2 * (steady.high_ppm - steady.low_ppm)


def test_without_evidence_the_belief_is_the_prior():
    belief = distil.posterior([])
    assert (belief.mean, belief.sigma) == (0.0, pytest.approx(distil.PRIOR_SIGMA))


@given(observations, st.randoms())
def test_the_order_of_evidence_does_not_matter(evidence, random):
    shuffled = list(evidence)
    random.shuffle(shuffled)
    assert distil.distil(ABOUT, evidence) == distil.distil(ABOUT, shuffled)


@given(observations)
def test_every_observation_is_evidence_on_exactly_one_side(evidence):
    skill = distil.distil(ABOUT, evidence)
    assert sorted((*skill.evidence_for, *skill.evidence_against)) == sorted(o.candidate_id for o in evidence)


@given(observations)
def test_the_posterior_lies_between_prior_and_data_and_a_claim_has_the_evidence_it_says(evidence):
    skill = distil.distil(ABOUT, evidence)
    ratios = [1.0, *(math.exp(o.log_ratio) for o in evidence if o.status is Status.PASSED)]
    assert min(ratios) - 1e-5 <= skill.ratio_ppm / PPM <= max(ratios) + 1e-5
    assert skill.low_ppm <= skill.ratio_ppm <= skill.high_ppm
    if skill.status is SkillStatus.SUPPORTED:
        assert skill.high_ppm < PPM
        assert skill.evidence_for
        assert sum(o.status is Status.PASSED for o in evidence) >= distil.PAIRS_MIN_ACROSS


@given(st.floats(0.3, 0.95), st.integers(1, 20))
def test_more_agreeing_evidence_never_widens_the_interval(ratio, count):
    fewer = distil.posterior([(math.log(ratio), 1e-4)] * count)
    more = distil.posterior([(math.log(ratio), 1e-4)] * (count + 1))
    assert more.sigma < fewer.sigma
