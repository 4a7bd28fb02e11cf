"""Emitted Triton modules: right in the interpreter under any schedule, and within the limits of chips when compiled."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shared import chips
from synthesizer_svc.schedule import emit
from synthesizer_svc.schedule.graph import Unsupported
from tests.integration.schedule import compiled, table
from tests.integration.schedule.triton import cases

OPERATORS = sorted(Path("examples/operators/gpu").glob("*.py"))
SHOWN = [Path(f"examples/operators/gpu/{name}.py") for name in ("softmax", "linear_bias_gelu", "conv1d", "fm_product")]
GPU = chips.load("nvidia-sm_90").gpu
EVERY = ",".join([*table.FAMILIES, "products", "half_windows", "long", "doubles"])
SHARED = {"sm_90": GPU.shared_bytes, "gfx942": 1 << 16}
FINISHED = {
    "nothing": "x @ y.t()",
    "residual": "x @ y.t() + z",
    "gelu_tanh": "F.gelu(x @ y.t() + z[0], approximate='tanh')",
    "geglu": "F.gelu(x @ y.t()) * z",
}
"""What comes after a product: 128 registers of a thread are sums already."""
SPILLED_MAX = 256
"""Bytes of a thread; a default that spills more was chosen badly."""


def child(module, *arguments):
    command = [sys.executable, "-W", "ignore", "-m", f"tests.integration.schedule.triton.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "families", ["pointwise,views,scans,gathers,losses", "rows_of_one", "reductions,normalisations,windows"]
)
def test_kernels_of_a_family_are_as_exact_as_torch_by_default(families):
    assert child("interpreted", families, "0") == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("families", ["contractions,products", "half_windows,long,doubles"])
def test_products_windows_and_long_rows_are_as_exact_as_torch_under_any_schedule(families):
    assert child("interpreted", families, "1") == []


@pytest.mark.timeout(600)
def test_a_factor_of_float32_is_not_rounded_to_the_other_factors_type():
    assert child("interpreted", "mixed", "1") == []


@pytest.mark.timeout(600)
def test_parts_of_long_sums_join_to_the_same_result():
    assert child("interpreted", "long", "0", "7", "4") == []
    assert child("interpreted", "products", "0", "half", "half_deep", "mlp", "3") == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("parts", [2, 4])
def test_what_follows_a_sum_is_the_same_in_parts_of_the_columns(parts):
    names = ("whole_lines_turned", "bfloat16", "mlp", "finished_beside_a_piece", "finished_with_other_elements")
    assert child("interpreted", "products", "1", *names, f"finish={parts}") == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("laid", ["channels_last", "direct"])
def test_a_window_over_its_input_or_a_copy_of_it_is_as_exact_as_torch(laid):
    assert child("interpreted", "half_windows", "1", f"input={laid}", "taps=unrolled") == []


@pytest.mark.timeout(600)
def test_one_maximum_for_each_chunk_of_a_row_gives_the_same_softmax():
    chosen = ("row=loop", "softmax_stats=chunked")
    names = ("softmax", "nothing_in_a_part", "masked_rows", "cross_entropy")
    assert child("interpreted", "long", "2", *names, "columns=1024", *chosen) == []
    assert child("interpreted", "normalisations,losses", "0", *chosen) == []


def test_only_windows_that_slide_along_memory_are_offered_a_copy_with_channels_last():
    offered = {}
    for name, case in cases.WINDOWS.items():
        built, _, _ = compiled.planned(table.source(case))
        offered[name] = any(d.name == "input" for d in emit.space("triton", built, GPU, 1).decisions)
    assert offered == {name: name.startswith("conv") for name in cases.WINDOWS}


def test_a_part_of_a_row_that_is_nothing_but_minus_infinity_adds_nothing():
    assert child("interpreted", "long", "8", "4", "nothing_in_a_part") == []


def test_positions_that_are_values_have_64_bits_where_they_may_go_beyond_32():
    assert child("interpreted", "long", "0", "far_positions") == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_family_is_as_exact_as_torch_under_random_schedules():
    assert child("interpreted", EVERY, "4") == []


def beyond_limits(told, architecture):
    """What does not compile, asks for more than a block has, or spills much."""
    return [
        (operator, kernel, needs)
        for operator, schedules in told.items()
        for kernels in schedules
        for kernel, needs in kernels.items()
        if kernel == "error" or needs["shared"] > SHARED[architecture] or needs["spilled"] > SPILLED_MAX
    ]


@pytest.mark.timeout(600)
def test_defaults_compile_for_hopper_within_its_limits():
    told = child("offline", "sm_90", "0", *map(str, SHOWN))
    assert set(told) == {path.stem for path in SHOWN}
    assert beyond_limits(told, "sm_90") == []
    assert [kernels["g0"]["spilled"] for kernels in told["linear_bias_gelu"]] == [0]


@pytest.mark.timeout(600)
def test_taps_are_fetched_in_whole_lines_from_a_copy_with_channels_last():
    conv1d = "examples/operators/gpu/conv1d.py"
    for choices, kernels, narrow in (
        (("input=direct",), {"g1_pack", "g1"}, True),
        (("input=channels_last",), {"g1_pack", "g1_turn", "g1"}, False),
    ):
        (found,) = child("offline", "sm_90", "0", conv1d, *choices)["conv1d"]
        assert set(found) == kernels
        assert bool(found["g1"]["narrow"]) is narrow
    assert found["g1_turn"]["narrow"] == 0


@pytest.mark.timeout(600)
def test_no_default_spills_where_a_function_follows_a_wide_product(tmp_path):
    for name, forward in FINISHED.items():
        (tmp_path / f"{name}.py").write_text(table.source((forward, ["torch.randn(4096, 4096).half()"] * 3)))
    told = child("offline", "sm_90", "0", *map(str, tmp_path.iterdir()))
    assert set(told) == set(FINISHED)
    assert [name for name, (kernels,) in told.items() if kernels["g0"]["spilled"]] == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("architecture", ["sm_90", "gfx942"])
def test_every_operator_at_gpu_size_compiles_within_the_limits_of_its_chip(architecture):
    told = child("offline", architecture, "0", *map(str, OPERATORS))
    assert set(told) == {path.stem for path in OPERATORS}
    assert beyond_limits(told, architecture) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("architecture", ["sm_90", "gfx942"])
def test_every_family_compiles_under_random_schedules(architecture):
    told = child("offline", architecture, "1", EVERY)
    assert [found for found in beyond_limits(told, architecture) if found[1] == "error"] == []


@pytest.mark.parametrize(("rows", "length", "parts"), [(4096, 8192, None), (4, 1 << 18, 128), (64, 1 << 16, 8)])
def test_long_rows_go_to_several_programs_only_where_they_are_few(rows, length, parts):
    case = (
        "F.cross_entropy(x, y, reduction='none')",
        [f"torch.randn({rows}, {length}).half()", f"torch.zeros({rows}).long()"],
    )
    built, _, _ = compiled.planned(table.source(case))
    found = emit.space("triton", built, GPU, 1).decision("g0.split")
    assert (found.default if found else None) == parts


def test_equal_schedules_give_equal_text_and_every_default_is_offered():
    built, _, _ = compiled.planned(table.source(table.NORMALISATIONS["layer_norm"]))
    space = emit.space("triton", built, GPU, 1)
    assert all(d.default in d.values for d in space.decisions)
    assert len({d.key for d in space.decisions}) == len(space.decisions)
    first, second = (emit.render("triton", built, space.default(), GPU, 1) for _ in range(2))
    assert first == second
    assert first.entry == "ModelNew"
    assert first.flags == ()


def test_choices_that_change_nothing_change_no_letter():
    built, _, _ = compiled.planned(table.source(table.NORMALISATIONS["layer_norm"]))
    default = emit.space("triton", built, GPU, 1).default()
    assert default.get("g0.row") == "whole"
    for dead, value in (("g0.columns", 256), ("g0.stages", 3), ("g0.variance", "two_pass")):
        other = emit.render("triton", built, default.with_choice(dead, value), GPU, 1)
        assert other == emit.render("triton", built, default, GPU, 1)


def test_what_has_no_form_in_triton_is_refused_before_a_search():
    case = ("x ** y", ["torch.randint(0, 5, (13,))", "torch.randint(0, 5, (13,))"])
    built, _, _ = compiled.planned(table.source(case))
    with pytest.raises(Unsupported, match="pow: has no form for integers in Triton"):
        emit.space("triton", built, GPU, 1)


def test_a_processor_is_no_machine_for_triton_and_a_gpu_none_for_cpp():
    built, _, _ = compiled.planned(table.source(table.POINTWISE["gelu"]))
    with pytest.raises(Unsupported, match="triton: is not written for"):
        emit.space("triton", built, compiled.this_isa(), 1)
    with pytest.raises(Unsupported, match="cpp: is not written for sm_90"):
        emit.space("cpp", built, GPU, 1)
