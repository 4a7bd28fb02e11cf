"""The vector functions, compiled for each instruction set, against float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.integration.schedule.vector_library import VectorLibrary, isas, ulp_error

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SPECIAL = np.array(
    [
        *(0, -0.0, 1, -1, np.inf, -np.inf, np.nan),
        *(1e-45, -1e-45, 1.1754944e-38, -1.1754944e-38, 3.4028235e38, -3.4028235e38),  # denormal, least, largest
        *(88.72, 88.73, -87.3, -103.9, -104.1),  # where exp overflows and underflows
        *(0.5, -0.5, 2, -2, 3, 0.75, 1.5, 0.6, 4, 10.05, 1e-8, -1e-8, 16777216.0, 1e10),
    ],
    np.float32,
)
BOUNDS = {
    "exp": (np.exp, -110, 95, 1.0),
    "exp_nonpositive": (np.exp, -110, 0, 1.0),
    "expm1": (np.expm1, -30, 95, 1.5),
    "log": (np.log, 0, 10, 1.0),
    "log2": (np.log2, 0, 10, 2.5),
    "log1p": (np.log1p, -1, 10, 1.0),
    "erf": (np.vectorize(math.erf, otypes=[float]), -5, 5, 1.5),
    "erfc": (np.vectorize(math.erfc, otypes=[float]), -5, 11, 4.0),
    "tanh": (np.tanh, -12, 12, 1.5),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -88, 40, 2.5),
    "sqrt": (np.sqrt, 0, 10, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 10, 1.5),
    "sin": (np.sin, -100, 100, 2.0),
    "cos": (np.cos, -100, 100, 2.0),
    "abs": (np.abs, -3, 3, 0.0),
    "floor": (np.floor, -10, 10, 0.0),
    "ceil": (np.ceil, -10, 10, 0.0),
    "round": (np.round, -10, 10, 0.0),
    "trunc": (np.trunc, -10, 10, 0.0),
}
"""Exact function, range of the dense sweep, largest error in ulp."""


@pytest.fixture(scope="module", params=isas(), ids=lambda isa: isa.name)
def library(request, tmp_path_factory) -> VectorLibrary:
    return VectorLibrary(request.param, tmp_path_factory.mktemp("vecmath"))


def every_exponent(n: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 2**32, n, dtype=np.uint32).view(np.float32)


def bits(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float32).view(np.uint32)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_function_stays_within_its_ulp_bound_on_all_kinds_of_numbers(library, name):
    exact, low, high, bound = BOUNDS[name]
    x = np.concatenate([SPECIAL, np.linspace(low, high, 20_000).astype(np.float32), every_exponent(20_000)])
    if name == "exp_nonpositive":
        x = x[~(x > 0)]
    if name == "sigmoid":
        x = x[~((x < -88) & (x > -104))]  # values that are denormal, flushed to zero
    got = library.apply(name, x)
    error = ulp_error(got, exact(x.astype(np.float64)))
    worst = error.argmax()
    assert error[worst] <= bound, f"{name}({x[worst]!r}) = {got[worst]!r}"


def test_pow_is_correctly_rounded_or_nearly_so_for_all_pairs_of_special_values(library):
    rng = np.random.default_rng(3)
    x = np.concatenate([np.repeat(SPECIAL, len(SPECIAL)), np.abs(every_exponent(10_000)), rng.uniform(-4, 4, 10_000)])
    y = np.concatenate([np.tile(SPECIAL, len(SPECIAL)), rng.uniform(-3, 3, 10_000), rng.integers(-20, 20, 10_000)])
    x, y = x.astype(np.float32), y.astype(np.float32)
    error = ulp_error(library.apply("pow", x, y), np.power(x.astype(np.float64), y.astype(np.float64)))
    worst = error.argmax()
    assert error[worst] <= 0.6, (x[worst], y[worst])


@pytest.mark.parametrize(("name", "exact"), [("max", np.maximum), ("min", np.minimum)])
def test_extrema_give_nan_when_either_operand_is_nan(library, name, exact):
    x, y = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    np.testing.assert_array_equal(library.apply(name, x, y), exact(x, y))


def test_signs_of_zero_survive_odd_functions(library):
    zeros = np.array([0.0, -0.0], np.float32)
    for name in ("expm1", "log1p", "erf", "tanh", "sin", "sqrt", "trunc", "round"):
        np.testing.assert_array_equal(bits(library.apply(name, zeros)), bits(zeros), err_msg=name)


def test_reductions_fold_halves_in_a_fixed_order(library):
    x = np.random.default_rng(1).standard_normal(library.lanes).astype(np.float32)
    for name, combine in (("hsum", np.add), ("hprod", np.multiply), ("hmax", np.maximum), ("hmin", np.minimum)):
        expected = x
        while len(expected) > 1:
            half = len(expected) // 2
            expected = combine(expected[:half], expected[half:])
        got = library.call(name, x, out=np.empty(1, np.float32), n=0)
        assert bits(got)[0] == bits(expected)[0], name


def test_a_maximum_over_lanes_sees_nan_in_any_lane(library):
    for lane in range(library.lanes):
        x = np.arange(library.lanes, dtype=np.float32)
        x[lane] = np.nan
        assert np.isnan(library.call("hmax", x, out=np.empty(1, np.float32), n=0)[0])


def test_prefix_sums_are_inclusive_within_a_vector(library):
    x = np.arange(1, 4 * library.lanes + 1, dtype=np.float32)
    expected = np.cumsum(x.reshape(4, library.lanes), axis=1).ravel()
    np.testing.assert_array_equal(library.apply("scan_sum", x), expected)


def test_partial_loads_and_stores_touch_the_leading_lanes_only(library):
    for n in range(library.lanes + 1):
        x = np.arange(1, library.lanes + 1, dtype=np.float32)
        got = library.call("part", x, out=np.full(library.lanes, -1, np.float32), n=n)
        np.testing.assert_array_equal(got, np.where(np.arange(library.lanes) < n, x, -1))


@pytest.mark.parametrize("name", ["sin", "pow"])
def test_gathered_elements_are_those_indexed(library, name):
    table = np.random.default_rng(2).standard_normal(1000).astype(np.float32)
    index = np.random.default_rng(len(name)).integers(0, 1000, 64).astype(np.int32)
    got = library.call("gather", index, table, out=np.empty(64, np.float32), n=64)
    np.testing.assert_array_equal(got, table[index])


def test_every_float16_converts_to_float32_and_back(library):
    h = np.arange(65536, dtype=np.uint16)
    wide = library.call("load_f16", h, out=np.empty(65536, np.float32), n=65536)
    np.testing.assert_array_equal(wide, h.view(np.float16).astype(np.float32))
    back = library.call("scalar_f16", h, out=np.empty(65536, np.uint16), n=65536)
    np.testing.assert_array_equal(back.view(np.float16), h.view(np.float16))


def test_float32_rounds_to_the_nearest_float16_and_bfloat16(library):
    x = np.concatenate([SPECIAL, every_exponent(30_000), np.random.default_rng(5).uniform(-7e4, 7e4, 30_000)])
    x = x[: len(x) // 64 * 64].astype(np.float32)
    half = library.call("store_f16", x, out=np.empty(len(x), np.uint16), n=len(x))
    np.testing.assert_array_equal(half.view(np.float16), x.astype(np.float16))
    brain = library.call("store_bf16", x, out=np.empty(len(x), np.uint16), n=len(x))
    wide = library.call("load_bf16", brain, out=np.empty(len(x), np.float32), n=len(x))
    whole = bits(x).astype(np.uint64)
    nearest = (((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)
    np.testing.assert_array_equal(wide, np.where(np.isnan(x), np.float32(np.nan), nearest))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_partial_half_loads_and_stores_touch_the_leading_lanes_only(library, kind):
    x = np.arange(0x3C00, 0x3C00 + library.lanes, dtype=np.uint16)
    for n in range(library.lanes + 1):
        got = library.call(f"part_{kind}", x, out=np.zeros(library.lanes, np.uint16), n=n)
        np.testing.assert_array_equal(got, np.where(np.arange(library.lanes) < n, x, 0))
