"""Which facts become evidence about a move, and with what ratio."""

import math
from dataclasses import replace

import pytest

from knowledge_svc import observations, records
from knowledge_svc.distil import distil
from shared.events import Basis, Bound, Estimate, Purpose, Status
from tests.unit.knowledge_svc.builders import MOVE, candidate, completed


def pair(parent, child):
    tried = observations.trial(candidate("b", ("a",)))
    before, after = observations.measured(parent), observations.measured(child)
    assert tried is not None
    assert before is not None
    return None if after is None else observations.observe(tried, after, before)


def test_the_ratio_of_times_is_the_inverse_ratio_of_speedups():
    seen = pair(completed("a", 1.0), completed("b", 1.25))
    assert seen is not None
    assert math.exp(seen.log_ratio) == pytest.approx(0.8)
    assert seen.sigma == pytest.approx(math.sqrt(2) * 0.02 / 4.2, rel=0.01)


def test_a_failing_child_counts_with_its_status():
    seen = pair(completed("a", 1.0), completed("b", None, status=Status.WRONG_RESULT))
    assert seen is not None
    assert seen.status is Status.WRONG_RESULT


@pytest.mark.parametrize("status", [Status.NOISY, Status.INFRASTRUCTURE, Status.CANCELLED])
def test_endings_that_are_not_the_kernels_doing_are_no_evidence(status):
    assert observations.measured(completed("b", None, status=status)) is None


def test_the_repair_of_a_broken_parent_is_no_evidence():
    assert pair(completed("a", None, status=Status.COMPILE_ERROR), completed("b", 2.0)) is None


def test_speedups_over_different_baselines_are_not_compared():
    assert pair(completed("a", 1.0, baseline="eager"), completed("b", 2.0, baseline="compiled")) is None


def counted(name, cost, basis=Basis.COUNTED, unit="instructions"):
    fact = completed(name, None)
    estimate = Estimate(basis=basis, cost=cost, unit=unit)
    return replace(fact, evaluation=replace(fact.evaluation, estimate=estimate))


def test_exact_counts_are_evidence_without_noise():
    seen = pair(counted("a", 4_000), counted("b", 1_000))
    assert seen is not None
    assert math.exp(seen.log_ratio) == pytest.approx(0.25)
    assert (seen.sigma, seen.unit) == (0.0, "instructions")
    assert records.observation(records.to_json(seen)) == seen


def test_what_a_model_says_is_no_evidence_and_units_are_not_mixed():
    assert pair(counted("a", 4_000, Basis.MODELLED), counted("b", 1_000, Basis.MODELLED)) is None
    assert pair(counted("a", 4_000), counted("b", 1_000, unit="model cycles")) is None
    assert pair(counted("a", 4_000), completed("b", 2.0)) is None


def test_a_claim_about_counts_says_so():
    about = observations.SkillContext(move=MOVE, operator_class="", chip="no-clock", language="c", bound=Bound.UNKNOWN)
    seen = pair(counted("a", 4_000), counted("b", 1_000))
    assert "multiplies counted instructions by" in distil(about, [seen]).statement
    timed = pair(completed("a", 1.0), completed("b", 2.0))
    assert "multiplies time by" in distil(about, [timed]).statement


def test_what_was_kept_before_costs_were_counted_is_read():
    kept = records.to_json(observations.measured(completed("a", 1.0)))
    old = {name: value for name, value in kept.items() if name not in ("cost", "unit")}
    assert records.measured(old) == observations.measured(completed("a", 1.0))


def test_a_final_re_measurement_is_not_paired():
    assert observations.measured(completed("b", 2.0, purpose=Purpose.FINAL)) is None


@pytest.mark.parametrize(
    ("move", "parents"),
    [("draft:default", ()), ("crossover", ("a", "c")), (f"{MOVE} + {MOVE}", ("a",)), ("repair:default", ("a",))],
)
def test_only_a_single_change_of_a_single_parent_is_a_trial(move, parents):
    assert observations.trial(candidate("b", parents, move=move)) is None


@pytest.mark.parametrize(
    ("move", "parameter", "expected"),
    [
        ("reduction:unroll=4", "", "reduction"),
        ("any:threads=2", "", ""),
        ("fuse_bias", "contraction", "contraction"),
        ("fuse_bias", "", ""),
    ],
)
def test_the_operator_class_is_read_from_the_move(move, parameter, expected):
    tried = observations.trial(candidate("b", ("a",), move=move, operator_class=parameter))
    assert tried is not None
    assert tried.operator_class == expected


def test_the_context_carries_the_bound_measured_on_the_parent():
    tried, before = observations.trial(candidate("b", ("a",))), observations.measured(completed("a", 1.0))
    assert tried is not None
    assert before is not None
    about = observations.context(tried, before)
    assert (about.bound, about.operator_class, about.language) == (Bound.MEMORY, "reduction", "cpp")
