"""Emitted contractions, compiled and compared with float64 numpy."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.cpp.contraction import complete_choices, decisions, emit_contraction
from synthesizer_svc.schedule.emit.cpp.contraction_spec import Epilogue, Lanes, Prologue
from tests.integration.schedule.contraction_cases import Case, Job, Jobs, convolution, matmul, relative_error
from tests.integration.schedule.vector_library import isas

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


OTHER_ISAS = ("primes", "both transposed", "conv1d", "conv2d strided", "thin, both along K", "float64")
WITH_EPILOGUE = ("primes", "deep", "B transposed", "thin, both along K", "batched")
WITH_PROLOGUE = ("primes", "A transposed", "B transposed", "thin, both along K", "batches share A")
SEEDS = range(24)


@pytest.fixture(scope="module")
def defaults(tmp_path_factory) -> Jobs:
    return Jobs({name: Job(case=make()) for name, make in CASES.items()}, BEST, tmp_path_factory.mktemp("defaults"))


@pytest.mark.parametrize("name", CASES)
def test_the_default_schedule_gives_the_contraction(name, defaults):
    assert relative_error(CASES[name](), defaults.run(name)) < 1


@pytest.fixture(scope="module", params=isas()[1:], ids=lambda isa: isa.name)
def other_isa(request, tmp_path_factory) -> Jobs:
    jobs = {name: Job(case=CASES[name]()) for name in OTHER_ISAS}
    return Jobs(jobs, request.param, tmp_path_factory.mktemp("other"))


@pytest.mark.parametrize("name", OTHER_ISAS)
def test_other_instruction_sets_give_the_same_contraction(name, other_isa):
    assert relative_error(CASES[name](), other_isa.run(name)) < 1


def drawn(seed: int) -> Job:
    rng = random.Random(seed)
    case = CASES[rng.choice(sorted(CASES))]()
    threads = rng.choice((1, 2))
    choices = {d.name: rng.choice(d.values) for d in decisions(case.spec, BEST, threads, "g")}
    return Job(case=case, choices=choices, threads=threads)


@pytest.fixture(scope="module")
def random_choices(tmp_path_factory) -> Jobs:
    return Jobs({str(seed): drawn(seed) for seed in SEEDS}, BEST, tmp_path_factory.mktemp("random"))


@pytest.mark.parametrize("seed", SEEDS)
def test_any_legal_choices_give_the_contraction(seed, random_choices):
    assert relative_error(drawn(seed).case, random_choices.run(str(seed))) < 1, drawn(seed).choices


def adding_bias(case: Case) -> Epilogue:
    """Stores the sum plus ``extra_input[m, n]``."""
    spec = case.spec

    def epilogue(at: Lanes) -> str:
        load = "ke_load_part" if at.count else "ke_load"
        store, count = ("ke_store_part", f", {at.count}") if at.count else ("ke_store", "")
        offset = "".join(f" + {b} * {s}" for b, s in zip(at.batch, spec.c.batch, strict=True))
        where = f"({at.row}) * {spec.n} + {at.col}"
        return (
            f"const vf y = {at.value} + {load}(extra_input + {where}{count}); // a comment ends with its line\n"
            f"{store}(C + {where}{offset}, y{count});"
        )

    return epilogue


def bias(case: Case) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((case.spec.m, case.spec.n)).astype(np.float32)


@pytest.fixture(scope="module")
def epilogues(tmp_path_factory) -> Jobs:
    jobs = {}
    for name in WITH_EPILOGUE:
        case = CASES[name]()
        for pack in ("yes", "no"):
            choices = {"pack_a": pack, "pack_b": pack, "kc": 256}
            jobs[f"{name} {pack}"] = Job(case=case, choices=choices, epilogue=adding_bias(case), extra=bias(case))
    return Jobs(jobs, BEST, tmp_path_factory.mktemp("epilogues"))


@pytest.mark.parametrize("pack", ["yes", "no"])
@pytest.mark.parametrize("name", WITH_EPILOGUE)
def test_an_epilogue_sees_each_finished_sum_once_with_its_indices(name, pack, epilogues):
    case = CASES[name]()
    got = epilogues.run(f"{name} {pack}").astype(np.float64) - bias(case)
    assert relative_error(case, got) < 4


def scaling(offset: int, columns: int) -> Prologue:
    """Multiplies an element by ``extra_input[offset + row * columns + col]``."""

    def prologue(at: Lanes) -> str:
        where = f"extra_input + {offset} + ({at.row}) * {columns} + ({at.col})"
        count = f", {at.count}" if at.count else ""
        if at.axis == "row":
            return f"({at.value}) * ke_load_strided({where}, {columns}{count})"
        return f"({at.value}) * ke_load{'_part' if at.count else ''}({where}{count})"

    return prologue


def scales(case: Case) -> np.ndarray:
    spec = case.spec
    return np.random.default_rng(1).standard_normal((spec.m + spec.n) * spec.k).astype(np.float32)


@pytest.fixture(scope="module")
def prologues(tmp_path_factory) -> Jobs:
    jobs = {}
    for name in WITH_PROLOGUE:
        case, spec = CASES[name](), CASES[name]().spec
        a, b = scaling(0, spec.k), scaling(spec.m * spec.k, spec.n)
        jobs[name] = Job(case=case, prologue_a=a, prologue_b=b, extra=scales(case))
    for name in ("conv1d", "conv2d strided"):
        case = CASES[name]()
        jobs[f"{name} doubled"] = Job(case=case, prologue_b=lambda at: f"{at.value} * 2.0f")
        jobs[f"{name} moved"] = Job(case=case, prologue_b=lambda at: f"{at.value} + 1.0f")
    return Jobs(jobs, BEST, tmp_path_factory.mktemp("prologues"))


@pytest.mark.parametrize("name", WITH_PROLOGUE)
def test_prologues_transform_every_element_of_an_operand_by_its_index(name, prologues):
    case = CASES[name]()
    m, n, k = case.spec.m, case.spec.n, case.spec.k
    scale = scales(case).astype(np.float64)
    a = case.a.swapaxes(-1, -2) if "A transposed" in name else case.a
    b = case.b.swapaxes(-1, -2) if case.spec.b.row == 1 else case.b
    left, right = a * scale[: m * k].reshape(m, k), b * scale[m * k :].reshape(k, n)
    assert np.abs(prologues.run(name) - left @ right).max() < 1e-6 * (np.abs(left) @ np.abs(right)).max()


@pytest.mark.parametrize("name", ["conv1d", "conv2d strided"])
def test_a_prologue_of_a_convolution_leaves_its_padding_zero(name, prologues):
    case = CASES[name]()
    assert relative_error(case, prologues.run(f"{name} doubled").astype(np.float64) / 2) < 1
    moved = prologues.run(f"{name} moved").astype(np.float64) - case.of_ones
    assert relative_error(case, moved) < 8


def test_nan_and_infinity_reach_only_the_sums_they_belong_to(tmp_path):
    case = matmul(20, 45, 33)
    case.a[7, 3], case.b[5, 44] = np.nan, np.inf
    got = Jobs({"poisoned": Job(case=case)}, BEST, tmp_path).run("poisoned")
    with np.errstate(invalid="ignore"):
        expected = case.a.astype(np.float64) @ case.b.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected))


def test_the_same_arguments_give_the_same_text():
    for make in CASES.values():
        spec = make().spec
        texts = {emit_contraction(spec, {}, BEST, 2, name="f") for _ in range(2)}
        assert len(texts) == 1
        assert complete_choices(spec, {"tile": "1000x1000"}, BEST, 1) == complete_choices(spec, {}, BEST, 1)
