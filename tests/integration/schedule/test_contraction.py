"""Emitted contractions, compiled and compared with float64 numpy."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.cpp.contraction import complete_choices, decisions, emit_contraction
from tests.integration.schedule.contraction_cases import convolution, matmul, relative_error, run
from tests.integration.schedule.vector_library import isas

pytestmark = pytest.mark.serial

BEST = isas()[0]
CASES = {
    "square": lambda: matmul(64, 64, 64),
    "primes": lambda: matmul(53, 101, 67),
    "one element": lambda: matmul(1, 1, 1),
    "one row": lambda: matmul(1, 203, 77),
    "one column": lambda: matmul(130, 1, 65),
    "outer product": lambda: matmul(37, 70, 1),
    "tall": lambda: matmul(517, 5, 9),
    "deep": lambda: matmul(7, 19, 3001),
    "A transposed": lambda: matmul(45, 83, 51, ta=True),
    "B transposed": lambda: matmul(45, 83, 51, tb=True),
    "both transposed": lambda: matmul(33, 49, 130, ta=True, tb=True),
    "C transposed": lambda: matmul(33, 49, 30, tc=True),
    "thin, both along K": lambda: matmul(3, 117, 133, tb=True),
    "batched": lambda: matmul(24, 64, 128, batch=(5,)),
    "two batch dimensions": lambda: matmul(13, 17, 19, batch=(2, 3), tb=True),
    "batches share A": lambda: matmul(29, 50, 23, batch=(4,), shared="a"),
    "batches share B": lambda: matmul(29, 50, 23, batch=(4,), shared="b"),
    "float64": lambda: matmul(31, 45, 27, dtype=DType.F64),
    "float64 transposed": lambda: matmul(31, 45, 27, ta=True, tb=True, dtype=DType.F64),
    "conv1d": lambda: convolution(3, 1, 12, 20, ((50, 3, 1, 1, 1),)),
    "conv1d without padding": lambda: convolution(2, 1, 5, 7, ((40, 4, 1, 1, 0),)),
    "conv1d strided, dilated": lambda: convolution(2, 1, 6, 9, ((61, 3, 2, 3, 4),)),
    "conv1d in groups": lambda: convolution(2, 3, 4, 5, ((33, 5, 1, 2, 3),)),
    "depthwise": lambda: convolution(2, 6, 1, 1, ((47, 3, 1, 1, 1),)),
    "conv2d": lambda: convolution(2, 1, 3, 10, ((9, 3, 1, 1, 1), (50, 3, 1, 1, 1))),
    "conv2d strided": lambda: convolution(1, 2, 4, 6, ((15, 3, 2, 1, 1), (21, 5, 2, 1, 2))),
    "conv2d, small images": lambda: convolution(2, 1, 5, 8, ((7, 3, 1, 1, 1), (7, 3, 1, 1, 1))),
    "pointwise convolution": lambda: convolution(2, 1, 17, 9, ((6, 1, 1, 1, 0), (7, 1, 1, 1, 0))),
    "conv3d": lambda: convolution(1, 1, 2, 3, ((5, 2, 1, 1, 1), (6, 3, 2, 1, 0), (7, 3, 1, 1, 1))),
    "padding beyond the input": lambda: convolution(1, 1, 2, 3, ((3, 2, 1, 1, 6),)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_default_schedule_gives_the_contraction(name, tmp_path):
    case = CASES[name]()
    assert relative_error(case, run(case, {}, BEST, tmp_path)) < 1


@pytest.mark.parametrize("isa", isas()[1:], ids=lambda isa: isa.name)
@pytest.mark.parametrize(
    "name", ["primes", "both transposed", "conv1d", "conv2d strided", "thin, both along K", "float64"]
)
def test_other_instruction_sets_give_the_same_contraction(name, isa, tmp_path):
    case = CASES[name]()
    assert relative_error(case, run(case, {}, isa, tmp_path)) < 1


@pytest.mark.parametrize("seed", range(24))
def test_any_legal_choices_give_the_contraction(seed, tmp_path):
    rng = random.Random(seed)
    name = rng.choice(sorted(CASES))
    case = CASES[name]()
    threads = rng.choice((1, 2))
    choices = {d.name: rng.choice(d.values) for d in decisions(case.spec, BEST, threads, "g")}
    assert relative_error(case, run(case, choices, BEST, tmp_path, threads=threads)) < 1, (name, choices)


@pytest.mark.parametrize("pack", ["yes", "no"])
@pytest.mark.parametrize("name", ["primes", "deep", "B transposed", "thin, both along K", "batched"])
def test_an_epilogue_sees_each_finished_sum_once_with_its_indices(name, pack, tmp_path):
    case = CASES[name]()
    spec = case.spec
    bias = np.random.default_rng(0).standard_normal((spec.m, spec.n)).astype(np.float32)

    def epilogue(at):
        load = "ke_load_part" if at.count else "ke_load"
        store, count = ("ke_store_part", f", {at.count}") if at.count else ("ke_store", "")
        offset = "".join(f" + {b} * {s}" for b, s in zip(at.batch, spec.c.batch, strict=True))
        where = f"({at.row}) * {spec.n} + {at.col}"
        index = "ke_set1((float)(" + at.row + ")) + __builtin_convertvector(ke_iota(), vf)"
        sum_ = f"{at.value} + {load}(extra_input + {where}{count}) + 0.0f * ({index}) // comments are fine"
        return f"const vf y = {sum_}\n;\n{store}(C + {where}{offset}, y{count});"

    choices = {"pack_a": pack, "pack_b": pack, "kc": 256}
    got = run(case, choices, BEST, tmp_path, epilogue=epilogue, extra=bias)
    assert relative_error(case, (got.astype(np.float64) - bias).reshape(got.shape)) < 4


@pytest.mark.parametrize("name", ["primes", "A transposed", "B transposed", "thin, both along K", "batches share A"])
def test_prologues_transform_every_element_of_an_operand_by_its_index(name, tmp_path):
    case = CASES[name]()
    m, n, k = case.spec.m, case.spec.n, case.spec.k
    scale = np.random.default_rng(1).standard_normal(m * k + k * n).astype(np.float32)

    def scaled(offset, columns):
        def prologue(at):
            where = f"extra_input + {offset} + ({at.row}) * {columns} + ({at.col})"
            if at.axis == "col":
                load = f"ke_load_part({where}, {at.count})" if at.count else f"ke_load({where})"
            else:
                load = f"ke_load_strided({where}, {columns}{', ' + at.count if at.count else ''})"
            return f"({at.value}) * {load}"

        return prologue

    got = run(
        case, {}, BEST, tmp_path, prologue_a=scaled(0, k), prologue_b=scaled(m * k, n), extra=scale
    )  # fmt: skip
    a = case.a.swapaxes(-1, -2) if case.spec.a.row == 1 and k > 1 else case.a
    b = case.b.swapaxes(-1, -2) if case.spec.b.row == 1 and n > 1 else case.b
    left = a.astype(np.float64) * scale[: m * k].reshape(m, k)
    right = b.astype(np.float64) * scale[m * k :].reshape(k, n)
    bound = 1e-6 * (np.abs(left) @ np.abs(right)).max()
    assert np.abs(got - left @ right).max() < bound


@pytest.mark.parametrize("name", ["conv1d", "conv2d strided"])
def test_a_prologue_of_a_convolution_leaves_its_padding_zero(name, tmp_path):
    case = CASES[name]()
    shifted = run(case, {}, BEST, tmp_path, prologue_b=lambda at: f"{at.value} * 2.0f")
    assert np.abs(shifted / 2 - case.expected).max() < 1e-5 * case.magnitude.max()
    moved = run(case, {}, BEST, tmp_path, prologue_b=lambda at: f"{at.value} + 1.0f - 1.0f")
    assert relative_error(case, moved) < 20


def test_nan_and_infinity_reach_only_the_sums_they_belong_to(tmp_path):
    case = matmul(20, 45, 33)
    case.a[7, 3], case.b[5, 44] = np.nan, np.inf
    got = run(case, {}, BEST, tmp_path)
    with np.errstate(invalid="ignore"):
        expected = case.a.astype(np.float64) @ case.b.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected))


def test_the_same_arguments_give_the_same_text():
    for make in CASES.values():
        spec = make().spec
        texts = {emit_contraction(spec, {}, BEST, 2, name="f") for _ in range(2)}
        assert len(texts) == 1
        assert complete_choices(spec, {"tile": "1000x1000"}, BEST, 1) == complete_choices(spec, {}, BEST, 1)
