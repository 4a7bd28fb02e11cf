"""The emitted text itself: stable, self-contained, explaining its choices; and decisions that mean something."""

import random

import pytest

from synthesizer_svc.schedule import emit, plan
from synthesizer_svc.schedule.schedule import Schedule
from tests.integration.schedule import compiled, table

SOFTMAX = table.source(("F.softmax(x, -1)", ["torch.randn(64, 1024)"]))


def test_the_same_plan_and_schedule_give_the_same_bytes():
    graph, _, _ = compiled.capture_here(SOFTMAX)
    texts = {compiled.render(plan.build(graph)).source for _ in range(3)}
    assert len(texts) == 1


def test_softmax_is_one_loop_nest_over_rows():
    built, _, _ = compiled.planned(SOFTMAX)
    assert built.operator_class == "reduction"
    assert len(built.groups) == 1
    assert built.temps == ()


def test_bias_and_activation_are_fused_into_the_contraction():
    built, _, _ = compiled.planned(table.source(table.CONTRACTIONS["linear_gelu"]))
    assert [g.kind for g in built.groups] == ["contraction"]


def test_the_text_names_group_passes_and_choices():
    built, _, _ = compiled.planned(SOFTMAX)
    text = compiled.render(built).source
    assert "// g0: reduction, 64 rows; lanes along the row" in text
    assert "// pass 2: store over 1024" in text
    assert "softmax_stats=two_pass" in text


def test_bytes_and_flops_of_the_plan_are_those_of_the_operator():
    built, _, _ = compiled.planned(table.source(("x + y", ["torch.randn(100, 10)", "torch.randn(10)"])))
    assert built.bytes_min == 4 * (1000 + 10 + 1000)
    assert built.flops_min == 1000


@pytest.mark.parametrize("family", ["scans", "windows"])
def test_every_decision_has_a_legal_default_and_says_what_it_trades(family):
    for case in table.FAMILIES[family].values():
        built, _, _ = compiled.planned(table.source(case))
        space = emit.space("cpp", built, compiled.this_isa(), 1)
        assert len({d.key for d in space.decisions}) == len(space.decisions)
        assert all(d.default in d.values and d.why for d in space.decisions)


def test_schedules_with_unknown_or_illegal_choices_are_completed():
    built, _, _ = compiled.planned(SOFTMAX)
    odd = Schedule(choices=(("g0.unroll", 3), ("g7.nothing", "x")))
    assert compiled.render(built, odd).source == compiled.render(built).source


def test_different_schedules_give_different_kernels():
    built, _, _ = compiled.planned(SOFTMAX)
    space = emit.space("cpp", built, compiled.this_isa(), 1)
    stream = random.Random(5)
    drawn = [Schedule(choices=tuple((d.key, stream.choice(d.values)) for d in space.decisions)) for _ in range(12)]
    assert len({compiled.render(built, s).source for s in drawn}) > 8
