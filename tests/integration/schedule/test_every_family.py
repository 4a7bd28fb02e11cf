"""Emitted kernels of every operator family against float64, under the default and under random schedules."""

import random
from collections import defaultdict

import pytest

from synthesizer_svc.schedule import emit
from synthesizer_svc.schedule.schedule import Schedule
from tests.integration.schedule import compiled, judging, table

RANDOM_SCHEDULES = 1


def schedules(built, name):
    """The default and a few random ones, the same on every run."""
    space = emit.space("cpp", built, compiled.this_isa(), 1)
    stream = random.Random(name)
    drawn = [
        Schedule(choices=tuple((d.key, stream.choice(d.values)) for d in space.decisions))
        for _ in range(RANDOM_SCHEDULES)
    ]
    return [space.default(), *drawn]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("family", table.FAMILIES)
def test_kernels_of_a_family_are_as_exact_as_torch_under_any_schedule(family, tmp_path):
    by_width = defaultdict(list)
    for name, case in table.FAMILIES[family].items():
        built, model, inputs = compiled.planned(table.source(case))
        for schedule in schedules(built, name):
            emitted = compiled.render(built, schedule)
            width = emitted.source.split("#define KE_VECTOR_BITS ")[1][:3]
            by_width[width].append((name, schedule, emitted, model, inputs))
    wrong = []
    for width, cases in by_width.items():
        folder = tmp_path / width
        folder.mkdir()
        launchers = compiled.compile_together([c[2].source for c in cases], folder, cases[0][2].flags)
        for (name, schedule, _, model, inputs), launcher in zip(cases, launchers, strict=True):
            declared, exact = judging.references(model, inputs)
            got = compiled.launch(launcher, compiled.kernel_inputs(model, inputs), declared)
            problem = judging.agrees(got, declared, exact)
            if problem:
                wrong.append((name, problem, schedule.choices))
    assert wrong == []
