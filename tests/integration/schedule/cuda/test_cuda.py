"""Kernels in CUDA and HIP: as right as torch's under an emulator of blocks, or refused by name."""

import random
import re

import pytest

from synthesizer_svc.schedule import emit
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.ir import Group
from synthesizer_svc.schedule.schedule import Schedule, choices_of
from tests.integration.schedule import compiled, judging, table
from tests.integration.schedule.cuda import cases, machine

LANGUAGES = ("cuda", "hip")


def drawn(space, name):
    """The default schedule, and one at random that is the same on every run."""
    stream = random.Random(name)
    other = Schedule(choices=tuple((d.key, stream.choice(d.values)) for d in space.decisions))
    return list(dict.fromkeys([space.default(), space.complete(other)]))


@pytest.mark.parametrize(("place", "name", "case"), [(n, *one) for n, one in enumerate(cases.written())])
def test_it_agrees_with_torch(place, name, case, tmp_path):
    plan, model, inputs = compiled.planned(table.source(case))
    declared, exact = judging.references(model, inputs)
    first = LANGUAGES[place % 2]  # the default in one language, the other schedule in the other
    chips = [machine.gpu(language) for language in (first, *(one for one in LANGUAGES if one != first))]
    for number, gpu in enumerate(chips):
        schedules = drawn(emit.space("cuda", plan, gpu, 1), name)
        schedule = schedules[min(number, len(schedules) - 1)]
        made = emit.render("cuda", plan, schedule, gpu, 1)
        launch = machine.build(made.source, tmp_path, gpu.warp)
        got = compiled.launch(launch, compiled.kernel_inputs(model, inputs), declared)
        assert judging.agrees(got, declared, exact) is None, (gpu.name, schedule.to_json())


@pytest.mark.parametrize(("family", "name"), [(f, n) for f, names in cases.REFUSED.items() for n in names.split()])
def test_what_is_not_written_is_refused_by_name(family, name):
    plan, _, _ = compiled.planned(table.source(table.FAMILIES[family][name]))
    with pytest.raises(Unsupported, match="not written in CUDA and HIP"):
        emit.space("cuda", plan, machine.gpu("cuda"), 1)


def test_one_source_is_written_in_both_languages():
    plan, _, _ = compiled.planned(table.source(cases.WHOLE["half_softmax"]))
    gpu = machine.gpu("cuda")
    space = emit.space("cuda", plan, gpu, 1)
    assert emit.render("cuda", plan, space.default(), gpu, 1) == emit.render("hip", plan, space.default(), gpu, 1)


def test_whole_vectors_are_read_sixteen_bytes_at_once():
    plan, _, _ = compiled.planned(table.source(cases.WHOLE["half_softmax"]))
    gpu = machine.gpu("cuda")
    text = emit.render("cuda", plan, emit.space("cuda", plan, gpu, 1).default(), gpu, 1).source
    assert "ke_load<8>(in0" in text
    assert "ke_store(out0" in text


def test_rows_that_are_no_multiple_of_a_vector_are_read_one_by_one():
    plan, _, _ = compiled.planned(table.source(table.NORMALISATIONS["softmax"]))  # of 337
    space = emit.space("cuda", plan, machine.gpu("cuda"), 1)
    assert space.decision("g0.width") is None


def test_large_operands_are_indexed_with_64_bits():
    plan, _, _ = compiled.planned(
        table.source(("x.expand(70000, 40000) * y", ["torch.randn(40000)", "torch.randn(70000, 1)"]))
    )
    gpu = machine.gpu("cuda")
    text = emit.render("cuda", plan, emit.space("cuda", plan, gpu, 1).default(), gpu, 1).source
    assert "const int64_t tile" in text
    assert "const int tile" not in text


def test_positions_that_are_values_have_64_bits_where_they_may_go_beyond_32(tmp_path):
    body = "far = torch.arange(66000) * 66000; return x + (far // 66000).float(), far + 3, x[far % 65521 % 66000]"
    plan, model, inputs = compiled.planned(table.source((body, ["torch.randn(66000)"])))
    declared, exact = judging.references(model, inputs)
    gpu = machine.gpu("cuda")
    text = emit.render("cuda", plan, emit.space("cuda", plan, gpu, 1).default(), gpu, 1).source
    got = compiled.launch(machine.build(text, tmp_path, gpu.warp), compiled.kernel_inputs(model, inputs), declared)
    assert judging.agrees(got, declared, exact) is None
    assert "int64_t tile" not in text


def test_what_fits_into_32_bits_is_computed_in_32():
    plan, _, _ = compiled.planned(table.source(("x.transpose(0, 1) + 1", ["torch.randn(300, 400)"])))
    gpu = machine.gpu("cuda")
    text = emit.render("cuda", plan, emit.space("cuda", plan, gpu, 1).default(), gpu, 1).source
    assert "(int64_t)" not in text.split("__global__")[1]


def test_a_grid_has_no_more_threads_than_hip_can_count():
    plan, _, _ = compiled.planned(
        table.source(("x.expand(70000, 70000) * y", ["torch.randn(70000)", "torch.randn(70000, 1)"]))
    )
    gpu = machine.gpu("hip")
    space = emit.space("hip", plan, gpu, 1)
    text = emit.render(
        "hip", plan, space.default().with_choice("g0.unroll", 1).with_choice("g0.width", 1), gpu, 1
    ).source
    blocks, threads = map(int, re.search(r"KE_LAUNCH\(g0, (\d+), (\d+),", text).groups())
    assert 2**31 < blocks * threads < 2**32
    assert f"tile += {blocks})" in text


def test_folds_declare_no_more_shared_memory_than_a_kernel_can(tmp_path):
    case = ("return x.argmax(1), x.argmin(1), (x * y).argmax(1), (x + y).argmax(1)", ["torch.randn(2, 100, 96)"] * 2)
    plan, model, inputs = compiled.planned(table.source(case))
    declared, exact = judging.references(model, inputs)
    gpu = machine.gpu("cuda")
    schedule = emit.space("cuda", plan, gpu, 1).default()
    for name, value in (("threads", 32), ("rows", 128)):
        schedule = schedule.with_choice(f"g0.{name}", value)
    text = emit.render("cuda", plan, schedule, gpu, 1).source
    entries = [int(n) for n in re.findall(r"__shared__ KeArg<\w+, \w+> \w+\[(\d+)\]", text.split("// g1")[0])]
    assert len(entries) == 4
    assert gpu.shared_declared == 48 << 10
    assert sum(16 * n for n in entries) == 32 << 10  # with all 1024 threads it were 64 KiB
    got = compiled.launch(machine.build(text, tmp_path, gpu.warp), compiled.kernel_inputs(model, inputs), declared)
    assert judging.agrees(got, declared, exact) is None


def test_a_few_long_rows_are_split_over_blocks():
    plan, _, _ = compiled.planned(table.source(("x.sum(-1)", ["torch.randn(2, 1 << 18)"])))
    gpu = machine.gpu("cuda")
    space = emit.space("cuda", plan, gpu, 1)
    assert choices_of(space.default(), "g0")["split"] > 1
    assert emit.render("cuda", plan, space.default(), gpu, 1).source.count("__global__") == 2


def test_a_part_of_a_row_that_is_nothing_but_minus_infinity_adds_nothing(tmp_path):
    half = "torch.where(torch.arange(262144) < 131072, float('-inf'), torch.randn(2, 262144))"
    plan, model, inputs = compiled.planned(table.source(("F.softmax(x, -1)", [half])))
    declared, exact = judging.references(model, inputs)
    gpu = machine.gpu("cuda")
    default = emit.space("cuda", plan, gpu, 1).default()
    assert choices_of(default, "g0")["split"] > 1
    for statistics in ("online", "two_pass"):
        schedule = default.with_choice("g0.softmax_stats", statistics)
        launch = machine.build(emit.render("cuda", plan, schedule, gpu, 1).source, tmp_path, gpu.warp)
        got = compiled.launch(launch, compiled.kernel_inputs(model, inputs), declared)
        assert judging.agrees(got, declared, exact) is None, statistics


def test_a_row_kept_in_registers_is_read_once():
    plan, _, _ = compiled.planned(table.source(cases.WHOLE["half_softmax"]))
    gpu = machine.gpu("cuda")
    group: Group = plan.groups[0]
    space = emit.space("cuda", plan, gpu, 1)
    loads = {
        row: emit.render("cuda", plan, space.default().with_choice(f"{group.name}.row", row), gpu, 1).source.count(
            "ke_load<8>("
        )
        for row in ("held", "again")
    }
    assert loads["held"] == 1
    assert loads["again"] > 1
