"""What is proposed from which situation, and in which order."""

from __future__ import annotations

from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.events import Basis, Bound, Status
from synthesizer_svc.schedule.proposal import changes
from synthesizer_svc.schedule.propose import propose
from synthesizer_svc.schedule.schedule import Schedule
from tests.builders import an_estimate
from tests.unit.synthesizer_svc.spaces import POINTS, SPACE, a_parent, a_situation, a_skill, failed, measured

schedules = st.tuples(*(st.sampled_from(d.values) for d in SPACE.decisions)).map(
    lambda values: Schedule(choices=tuple(sorted(zip((d.key for d in SPACE.decisions), values, strict=True))))
)
evaluations = st.one_of(
    st.none(),
    st.builds(measured, st.sampled_from(list(Bound)), st.floats(min_value=0.2, max_value=20)),
    st.builds(failed, st.sampled_from([Status.COMPILE_ERROR, Status.PRECISION_DOWNGRADE, Status.NOISY])),
)
situations = st.builds(
    lambda seed, parents, siblings, negative: a_situation(
        seed=seed,
        parents=tuple(a_parent(s, e, f"c{i}") for i, (s, e) in enumerate(parents)),
        siblings=tuple(siblings),
        negative=tuple(negative),
    ),
    st.integers(0, 1 << 31),
    st.lists(st.tuples(schedules, evaluations), max_size=2),
    st.lists(schedules, max_size=3),
    st.lists(schedules, max_size=3),
)


@settings(max_examples=25)
@given(situations)
def test_every_proposal_is_legal_new_and_distinct(situation):
    known = {*situation.siblings, *situation.negative} | {p.schedule for p in situation.parents}
    proposed = [p.schedule for p in propose(situation)]
    assert [SPACE.complete(s) for s in proposed] == proposed
    assert len(set(proposed)) == len(proposed) <= POINTS
    assert not known & set(proposed)


@settings(max_examples=10)
@given(situations)
def test_equal_situations_give_equal_proposals(situation):
    assert list(propose(situation)) == list(propose(situation))


def test_another_seed_gives_another_order():
    orders = {tuple(p.schedule for p in propose(a_situation(seed=seed, parents=(a_parent(),)))) for seed in range(10)}
    assert len(orders) > 1


def test_the_first_draft_is_the_default_and_the_others_differ_from_it():
    first, *others = islice(propose(a_situation()), 5)
    assert first.schedule == SPACE.default()
    assert first.move.name == "draft:default"
    assert all(changes(SPACE.default(), other.schedule) for other in others)


def test_single_moves_come_before_double_ones_and_both_are_complete():
    counts = [len(changes(SPACE.default(), p.schedule)) for p in propose(a_situation(parents=(a_parent(),)))]
    singles = sum(len(d.values) - 1 for d in SPACE.decisions)
    per_decision = [len(d.values) - 1 for d in SPACE.decisions]
    doubles = sum(a * b for i, a in enumerate(per_decision) for b in per_decision[i + 1 :])
    assert counts == [1] * singles + [2] * doubles


def test_a_move_is_named_by_operator_class_and_not_by_group():
    names = {p.move.name for p in propose(a_situation(parents=(a_parent(),)))}
    assert "pointwise:stores=streaming" in names
    assert not any("g0" in name or "g1" in name for name in names)


def test_a_move_records_where_it_came_from_and_why_with_numbers():
    (move,) = (
        p.move
        for p in propose(a_situation(parents=(a_parent(evaluation=measured(Bound.MEMORY, 1.3)),)))
        if p.move.name == "pointwise:stores=streaming"
    )
    parameters = {e.name: e.value for e in move.parameters}
    assert parameters == {
        "operator_class": "pointwise",
        "group": "g0",
        "decision": "stores",
        "from": "cached",
        "to": "streaming",
    }
    assert "memory-bound at 43 % of the speed of light, 1.30x the baseline" in move.rationale
    assert "skips the read for ownership" in move.rationale


def test_where_costs_are_estimated_the_cheaper_parent_is_the_better_one():
    cheap = a_parent(evaluation=an_estimate(1_000, Basis.COUNTED, unit="instructions"), name="a")
    dear = a_parent(evaluation=an_estimate(4_000, Basis.COUNTED, unit="instructions"), name="z")
    assert cheap.worth > dear.worth
    assert a_parent(evaluation=measured(ratio=1.4)).worth > a_parent(evaluation=measured(ratio=1.3)).worth
    single = next(p for p in propose(a_situation(parents=(cheap,))) if p.move.name == "pointwise:stores=streaming")
    assert "1,000 instructions a call (counted)" in single.move.rationale
    assert "baseline" not in single.move.rationale


def _mean_rank(name: str, **situation) -> float:
    ranks = []
    for seed in range(60):
        names = [p.move.name for p in propose(a_situation(seed=seed, **situation)) if " + " not in p.move.name]
        ranks.append(names.index(name))
    return sum(ranks) / len(ranks)


def test_moves_made_for_the_parents_bottleneck_come_earlier_on_average():
    memory, compute = (
        _mean_rank("pointwise:stores=streaming", parents=(a_parent(evaluation=measured(bound)),))
        for bound in (Bound.MEMORY, Bound.COMPUTE)
    )
    assert memory < compute


def test_neighbours_come_before_jumps_on_average():
    parents = (a_parent(evaluation=measured(Bound.COMPUTE)),)
    assert _mean_rank("pointwise:unroll=4", parents=parents) < _mean_rank("pointwise:unroll=8", parents=parents)


def test_a_skill_that_pays_brings_its_move_forward_and_one_that_costs_puts_it_back():
    parents, name = (a_parent(),), "reduction:layout=packed"
    pays, unknown, costs = (
        _mean_rank(name, parents=parents, skills=skills)
        for skills in ((a_skill(name, 0.7),), (), (a_skill(name, 1.4),))
    )
    assert pays < 0.2  # nearly always first
    assert pays < unknown < costs


def test_a_skill_from_another_chip_counts_for_less():
    parents, name = (a_parent(),), "reduction:layout=packed"
    here, elsewhere = (
        _mean_rank(name, parents=parents, skills=(a_skill(name, 0.9, chip=chip),))
        for chip in ("cpu-x86_64", "riscv-rvv")
    )
    assert here < elsewhere


def test_what_siblings_tried_comes_late_and_what_failed_comes_last():
    base = SPACE.default().with_choice("g0.unroll", 8)
    situation = a_situation(
        parents=(a_parent(),),
        siblings=(base.with_choice("g0.stores", "streaming"),),
        negative=(SPACE.default().with_choice("g1.accumulators", 4).with_choice("g1.layout", "packed"),),
    )
    names = [p.move.name for p in propose(situation) if " + " not in p.move.name]
    tried = {"pointwise:unroll=8", "pointwise:stores=streaming"}
    broken = {"reduction:accumulators=4", "reduction:layout=packed"}
    assert set(names[-2:]) == broken
    assert set(names[-4:-2]) == tried


def test_a_failed_parent_is_stepped_back_toward_the_default_first():
    broken = SPACE.default().with_choice("g0.unroll", 8).with_choice("g1.layout", "packed")
    situation = a_situation(parents=(a_parent(broken, failed(why="register spill")),))
    first, second, third = islice(propose(situation), 3)
    assert {first.move.name, second.move.name} == {"pointwise:unroll=2", "reduction:layout=row"}
    assert third.schedule == SPACE.default()
    assert "failed with COMPILE_ERROR: register spill" in first.move.rationale


def test_a_parent_that_was_only_unlucky_is_improved_not_repaired():
    moved = SPACE.default().with_choice("g0.unroll", 8)
    situation = a_situation(parents=(a_parent(moved, failed(Status.NOISY)),))
    assert not any(e.value == "repair" for p in propose(situation) for e in p.move.parameters)


def test_children_of_two_parents_mix_both_and_come_first():
    one = Schedule(choices=(("g0.stores", "streaming"), ("g0.unroll", 8), ("g1.accumulators", 4), ("g1.layout", "row")))
    two = Schedule(choices=(("g0.stores", "cached"), ("g0.unroll", 1), ("g1.accumulators", 1), ("g1.layout", "packed")))
    proposals = list(propose(a_situation(parents=(a_parent(one), a_parent(two, name="c2")))))
    crossed = [p for p in proposals if p.move.name == "crossover"]
    assert len(crossed) == 2**4 - 2
    assert proposals[: len(crossed)] == crossed
    for child in crossed:
        assert all(value in (one.get(key), two.get(key)) for key, value in child.schedule.choices)


def test_equal_parents_have_no_crossed_children_but_moves():
    situation = a_situation(parents=(a_parent(), a_parent(name="c2")))
    assert next(propose(situation)).move.name != "crossover"
