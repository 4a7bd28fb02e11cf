"""Kernels in C for the vector extension: as right as torch's, under many schedules, or refused by name."""

import json
import random

import pytest

from shared import chips
from synthesizer_svc.schedule import emit
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.schedule import Schedule
from tests.integration.schedule import compiled, judging, table
from tests.integration.schedule.rvv import machine

LANGUAGE = "c-rvv"
WRITTEN = {
    "pointwise": "gelu activations exponentials broadcast_both where_clamp compare_to_bool bool_input scalar_tensor",
    "views": "transpose_inside strided_input cat stack_flip_slice",
    "reductions": "sum_last sum_first sum_all amax_amin prod any_all var_std one_column",
    "normalisations": "softmax softmax_channels masked_softmax layer_norm group_norm",
    "contractions": "matmul linear_gelu prologue product_of_three attention vector",
}
REFUSED = {
    "pointwise": "int64 float16 bfloat16 float64 trigonometry",
    "scans": "cumsum",
    "gathers": "gather embedding",
    "windows": "conv2d",
}
needs_tools = pytest.mark.skipif(bool(machine.missing), reason=f"needs {', '.join(machine.missing)}")


def cases(families):
    return [(family, name) for family, names in families.items() for name in names.split()]


def vector_unit():
    return chips.load("riscv-rvv").vector


def drawn(space, name, count):
    """The default schedule and ``count`` random ones, the same on every run."""
    stream = random.Random(name)
    more = [Schedule(choices=tuple((d.key, stream.choice(d.values)) for d in space.decisions)) for _ in range(count)]
    return list(dict.fromkeys([space.default(), *(space.complete(s) for s in more)]))


@needs_tools
@pytest.mark.parametrize(("family", "name"), cases(WRITTEN))
def test_it_agrees_with_torch(family, name, tmp_path):
    plan, model, inputs = compiled.planned(table.source(table.FAMILIES[family][name]))
    unit = vector_unit()
    declared, exact = judging.references(model, inputs)
    for schedule in drawn(emit.space(LANGUAGE, plan, unit, 1), name, 1):
        made = emit.render(LANGUAGE, plan, schedule, unit, 1)
        program = machine.build(made.source, made.flags, tmp_path)
        got = machine.launch(program, compiled.kernel_inputs(model, inputs), declared)
        assert judging.agrees(got, declared, exact) is None, schedule.to_json()


@pytest.mark.parametrize(("family", "name"), cases(REFUSED))
def test_what_has_no_form_is_refused_by_name(family, name):
    plan, _, _ = compiled.planned(table.source(table.FAMILIES[family][name]))
    with pytest.raises(Unsupported):
        emit.space(LANGUAGE, plan, vector_unit(), 1)


@needs_tools
def test_a_length_set_in_every_turn_computes_the_same_on_other_machines(tmp_path):
    plan, model, inputs = compiled.planned(table.source(table.NORMALISATIONS["softmax"]))
    unit = vector_unit()
    space = emit.space(LANGUAGE, plan, unit, 1)
    made = emit.render(LANGUAGE, plan, space.default(), unit, 1)
    assert "once" not in json.loads(space.default().to_json()).values()
    flags = tuple(flag for flag in made.flags if flag not in unit.flags)  # which promise the registers of this chip
    program = machine.build(made.source, flags, tmp_path)
    declared, exact = judging.references(model, inputs)
    for vlen in (128, 512):
        got = machine.launch(program, compiled.kernel_inputs(model, inputs), declared, vlen=vlen)
        assert judging.agrees(got, declared, exact) is None


def test_the_same_choices_give_the_same_text():
    plan, _, _ = compiled.planned(table.source(table.NORMALISATIONS["layer_norm"]))
    unit = vector_unit()
    first, again = (emit.render(LANGUAGE, plan, Schedule(), unit, 1) for _ in range(2))
    assert first == again
