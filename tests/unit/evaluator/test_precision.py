"""What is a lower precision and what is not: by its error, whatever the arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.cases import Demand, make_reference, narrowed, widened
from evaluator_svc.judge import judge
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from shared.events import Status

ROWS, DEPTH = 64, 512


def matrices(seed=1):
    draw = np.random.default_rng(seed)
    return (draw.standard_normal((ROWS, DEPTH)).astype(np.float32) for _ in range(2))


def tf32(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def bf16(x):
    return widened(narrowed(x, DType.BF16), DType.BF16).astype(np.float32)


def product_reference(a, b, **fields):
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    low = a.astype(np.float16).astype(np.float32) @ b.astype(np.float16).astype(np.float32).T
    rounded = tf32(a) @ tf32(b).T
    lows = [
        ("float16", low.astype(np.float16).astype(np.float32)),
        ("bfloat16", bf16(bf16(a) @ bf16(b).T)),
        ("inputs in tf32", rounded),
    ]
    return make_reference(
        TensorSpec(shape=exact.shape, dtype=DType.F32),
        exact.reshape(-1),
        (a @ b.T).reshape(-1),
        None,
        [(name, array.reshape(-1)) for name, array in lows],
        magnitude=(np.abs(a) @ np.abs(b).T).reshape(-1),
        terms=DEPTH,
        **fields,
    )


def parts(x, count, narrow):
    found, left = [], x.astype(np.float32)
    for _ in range(count):
        found.append(narrow(left))
        left = (left - found[-1]).astype(np.float32)
    return found


def emulated(a, b, count, narrow):
    """A float32 product from products of narrower parts, each summed in float32."""
    total = np.zeros((a.shape[0], b.shape[0]), dtype=np.float32)
    for i, x in reversed(list(enumerate(parts(a, count, narrow)))):
        for j, y in reversed(list(enumerate(parts(b, count, narrow)))):
            if i + j < count:
                total += x @ y.T
    return total


def accumulated_in_half(a, b):
    total = np.zeros((a.shape[0], b.shape[0]), dtype=np.float16)
    for k in range(DEPTH):
        total += (a[:, k, None] * b[None, :, k]).astype(np.float16)
    return total.astype(np.float32)


DOWNGRADES = {
    "inputs in tf32": lambda a, b: tf32(a) @ tf32(b).T,
    "inputs in float16": lambda a, b: a.astype(np.float16).astype(np.float32) @ b.astype(np.float16).astype("f4").T,
    "inputs in bfloat16": lambda a, b: bf16(a) @ bf16(b).T,
    "right but stored as float16": lambda a, b: (a @ b.T).astype(np.float16).astype(np.float32),
    "right but stored as bfloat16": lambda a, b: bf16(a @ b.T),
    "accumulated in float16": accumulated_in_half,
}
AS_ACCURATE = {
    "three products of tf32": lambda a, b: emulated(a, b, 2, tf32),
    "six products of bfloat16": lambda a, b: emulated(a, b, 3, bf16),
}


@pytest.mark.parametrize("how", DOWNGRADES)
def test_a_downgraded_product_is_called_one(how):
    a, b = matrices()
    verdict = judge(product_reference(a, b), DOWNGRADES[how](a, b).astype(np.float32).tobytes())
    assert verdict.status is Status.PRECISION_DOWNGRADE
    assert caught_by(verdict.evidence) is Layer.PRECISION


@pytest.mark.parametrize("how", AS_ACCURATE)
def test_an_emulation_as_accurate_as_float32_passes(how):
    a, b = matrices()
    verdict = judge(product_reference(a, b), AS_ACCURATE[how](a, b).tobytes())
    assert verdict.passed, verdict.evidence


def test_an_error_in_a_small_row_is_seen_beside_large_ones():
    a, b = matrices()
    a[0] *= np.float32(1e-6)
    truth = product_reference(a, b, held_out=True)
    got = (a @ b.T).astype(np.float32)
    assert judge(truth, got.tobytes()).passed
    got[0] = 0
    verdict = judge(truth, got.tobytes())
    assert verdict.status is Status.WRONG_RESULT
    assert "any order of summation" in verdict.evidence[1].value


@pytest.mark.parametrize("order", ["forward", "backward", "lanes"])
def test_no_order_of_summation_is_refused_however_the_terms_cancel(order):
    draw = np.random.default_rng(3)
    x = ((1 - 2.0 * (np.arange(4096) % 2)) * 1e4 + draw.standard_normal((64, 4096))).astype(np.float32)
    exact = x.astype(np.float64).sum(axis=1)
    truth = make_reference(
        TensorSpec(shape=(64,), dtype=DType.F32), exact, x.sum(axis=1), None, [], held_out=True,
        magnitude=np.abs(x).sum(axis=1), terms=4096,
    )  # fmt: skip
    total = np.zeros((64, 16 if order == "lanes" else 1), dtype=np.float32)
    step = total.shape[1]
    for column in range(0, 4096, step):
        part = x[:, ::-1] if order == "backward" else x
        total += part[:, column : column + step]
    verdict = judge(truth, total.sum(axis=1, dtype=np.float32).tobytes())
    assert verdict.passed, verdict.evidence


def integer_sums(dtype):
    draw = np.random.default_rng(5)
    exact = draw.integers(-100, 100, 256).astype(np.float64)
    return make_reference(
        TensorSpec(shape=(256,), dtype=dtype), exact, narrowed(exact, dtype), None, [], held_out=True,
        demand=Demand.INTEGERS,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.BF16])
def test_a_term_that_an_integer_sum_misses_shows_in_any_precision(dtype):
    truth = integer_sums(dtype)
    got = truth.exact.copy()
    assert judge(truth, narrowed(got, dtype).tobytes()).passed
    got[17] += 1
    verdict = judge(truth, narrowed(got, dtype).tobytes())
    assert verdict.status is Status.WRONG_RESULT
    assert caught_by(verdict.evidence) is Layer.JUDGE


def test_a_transform_that_rounds_to_the_right_integer_passes():
    truth = integer_sums(DType.F32)
    signal = np.fft.irfft(np.fft.rfft(truth.exact)).astype(np.float32)
    assert not np.array_equal(signal, truth.exact)
    assert judge(truth, signal.tobytes()).passed


def not_finite(demand):
    exact = np.array([1.0, np.nan, np.inf, -np.inf, 3.0])
    spec = TensorSpec(shape=(5,), dtype=DType.F32)
    return make_reference(spec, exact, exact.astype(np.float32), None, [], held_out=True, demand=demand)


def test_where_inputs_are_not_finite_the_finite_part_counts_and_the_rest_is_told():
    truth = not_finite(Demand.FINITE_PART)
    other = np.array([1.0, 0.0, np.inf, 0.0, 3.0], dtype=np.float32)
    verdict = judge(truth, other.tobytes())
    assert verdict.passed
    assert verdict.evidence[-1].value.startswith("2 elements")
    for position, value in ((0, np.nan), (4, np.inf), (0, 1.5)):
        wrong = truth.declared.copy()
        wrong[position] = value
        assert judge(truth, wrong.tobytes()).status is Status.WRONG_RESULT, (position, value)
    assert judge(not_finite(Demand.LIMITS), other.tobytes()).status is Status.WRONG_RESULT


def test_values_under_the_smallest_normal_number_may_be_flushed_but_not_in_float16():
    for dtype, passes in ((DType.F32, True), (DType.BF16, True), (DType.F16, False)):
        exact = np.linspace(1, 2, 64) * (2.0**-130 if dtype is not DType.F16 else 2.0**-17)
        truth = make_reference(
            TensorSpec(shape=(64,), dtype=dtype), exact, narrowed(exact, dtype), None, [], held_out=True
        )
        assert judge(truth, bytes(truth.spec.nbytes)).passed is passes, dtype
