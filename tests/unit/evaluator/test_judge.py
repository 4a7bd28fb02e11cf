"""The judge, in both directions: honest kernels pass, mutants and lower precision die, with evidence."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.cases import make_reference
from evaluator_svc.judge import judge, within
from evaluator_svc.mutants import mutants
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from shared.events import Status
from tests.unit.evaluator.references import OPERATORS, inputs, integers, mean_loss, normalised, reference, softmax


def evidence(verdict):
    return {entry.name: entry.value for entry in verdict.evidence}


@pytest.mark.parametrize("name", OPERATORS)
def test_every_standard_mutant_of_every_operator_is_rejected(name):
    truth = reference(OPERATORS[name], inputs())
    survivors = [mutant for mutant, data in mutants(truth) if judge(truth, data).passed]
    assert survivors == []


@pytest.mark.parametrize("name", OPERATORS)
def test_the_quick_bound_accepts_whatever_the_judge_accepts(name):
    truth = reference(OPERATORS[name], inputs())
    assert within(truth, truth.declared.tobytes())
    nudged = truth.exact.astype(np.float32)
    assert judge(truth, nudged.tobytes()).passed
    assert within(truth, nudged.tobytes())


def serial_sum(x):
    total = np.zeros(x.shape[0], dtype=np.float32)
    for column in range(x.shape[1]):
        total += x[:, column]
    return total


def lane_sum(x):
    lanes = np.zeros((x.shape[0], 16), dtype=np.float32)
    for column in range(0, x.shape[1], 16):
        lanes += x[:, column : column + 16]
    return lanes.sum(axis=1, dtype=np.float32)


@pytest.mark.parametrize("order", [serial_sum, lane_sum])
@pytest.mark.parametrize("shift", [0.0, 0.5, 4.0])
def test_another_summation_order_passes(order, shift):
    x = inputs(columns=1024) + np.float32(shift)
    truth = reference(OPERATORS["row_sum"], x)
    verdict = judge(truth, order(x).tobytes())
    assert verdict.passed, evidence(verdict)


@pytest.mark.parametrize("first_row", [0, 16, 32, 48])
@pytest.mark.parametrize("place", [0, 500, -1])
def test_a_serial_sum_of_equal_terms_after_a_large_one_passes_where_the_trusted_one_has_sixteen_lanes(place, first_row):
    x = np.zeros((16, 1008), dtype=np.float32)  # spikes: zeros and one value a row, of any mantissa
    x[:, place] = 4 * (1 + np.arange(first_row, first_row + 16) / 64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    exact = e.astype(np.float64) / e.astype(np.float64).sum(axis=-1, keepdims=True)
    trusted = (e / lane_sum(e)[:, None]).astype(np.float32)
    low = trusted.astype(np.float16).astype(np.float32)
    spec = TensorSpec(shape=x.shape, dtype=DType.F32)
    lower = [("float16", low.reshape(-1))]
    truth = make_reference(spec, exact.reshape(-1), trusted.reshape(-1), None, lower, held_out=True)
    verdict = judge(truth, (e / serial_sum(e)[:, None]).astype(np.float32).tobytes())
    assert verdict.passed, evidence(verdict)
    assert judge(truth, low.tobytes()).status is Status.PRECISION_DOWNGRADE


def test_a_result_of_sixteen_bits_has_no_room_for_such_a_sum():
    exact = inputs(columns=256).astype(np.float64).reshape(-1)
    truth = make_reference(
        TensorSpec(shape=exact.shape, dtype=DType.F16), exact, exact.astype(np.float16), None, [], held_out=True
    )
    got = exact.copy()
    got[7] += 80 * 2.0**-11 * np.abs(exact).max()
    assert judge(truth, exact.astype(np.float16).tobytes()).passed
    assert judge(truth, got.astype(np.float16).tobytes()).status is Status.WRONG_RESULT


@pytest.mark.parametrize("ulps", [-2, -1, 1, 2])
def test_an_exponential_good_to_two_ulp_passes(ulps):
    x = inputs(columns=1024)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    noise = np.random.default_rng(3).uniform(-1, 1, e.shape)
    e = (e * (1 + ulps * noise * 2.0**-23)).astype(np.float32)
    got = e * (np.float32(1) / e.sum(axis=-1, keepdims=True))
    verdict = judge(reference(softmax, x), got.astype(np.float32).tobytes())
    assert verdict.passed, evidence(verdict)


def test_one_pass_variance_passes_on_a_moderately_shifted_input():
    x = inputs(columns=1024) + np.float32(2)
    mean = serial_sum(x)[:, None] / np.float32(x.shape[1])
    variance = serial_sum(x * x)[:, None] / np.float32(x.shape[1]) - mean * mean
    got = (x - mean) / np.sqrt(variance + np.float32(1e-5))
    truth = reference(normalised, x)
    # Conditioning: what inputs an ulp away give.
    near = x * (1 + np.random.default_rng(5).uniform(-1, 1, x.shape) * 2.0**-23).astype(np.float32)
    truth = make_reference(
        truth.spec, truth.exact, truth.declared, normalised(near).astype(np.float32).reshape(-1), [],
    )  # fmt: skip
    verdict = judge(truth, got.astype(np.float32).tobytes())
    assert verdict.passed, evidence(verdict)


@pytest.mark.parametrize("name", ["softmax", "normalised", "square"])
def test_half_precision_inside_is_a_precision_downgrade_with_both_errors(name):
    x = inputs()
    truth = reference(OPERATORS[name], x)
    got = OPERATORS[name](x.astype(np.float16).astype(np.float32)).astype(np.float16).astype(np.float32)
    verdict = judge(truth, got.tobytes())
    assert verdict.status is Status.PRECISION_DOWNGRADE
    assert {"rmse", "rmse_of_lower_precision", "rmse_limit"} <= set(evidence(verdict))


def test_a_wrong_element_is_named_with_its_index_value_and_truth():
    truth = reference(softmax, inputs())
    got = truth.declared.copy()
    got[5 * 320 + 7] += 0.25
    verdict = judge(truth, got.tobytes())
    assert verdict.status is Status.WRONG_RESULT
    assert evidence(verdict)["first_wrong_index"] == "[5, 7]"
    assert evidence(verdict)["wrong_elements"] == f"1 of {got.size}"
    assert not within(truth, got.tobytes())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_not_finite_element_is_wrong(value):
    truth = reference(softmax, inputs())
    got = truth.declared.copy()
    got[-1] = value
    assert judge(truth, got.tobytes()).status is Status.WRONG_RESULT
    assert not within(truth, got.tobytes())


def special():
    exact = np.array([1.0, np.inf, -np.inf, np.nan, 2.0])
    return make_reference(TensorSpec(shape=(5,), dtype=DType.F32), exact, exact.astype(np.float32), None, [])


def test_not_finite_elements_must_be_where_the_reference_has_them():
    truth = special()
    assert judge(truth, truth.declared.tobytes()).passed
    for position, value in ((0, np.nan), (1, 1.0), (1, -np.inf), (3, np.inf), (4, 2.5)):
        got = truth.declared.copy()
        got[position] = value
        assert judge(truth, got.tobytes()).status is Status.WRONG_RESULT, (position, value)


def test_integers_must_be_equal():
    truth = integers(np.arange(12).reshape(3, 4))
    assert judge(truth, truth.declared.tobytes()).passed
    got = truth.declared.copy()
    got[6] += 1
    verdict = judge(truth, got.tobytes())
    assert verdict.status is Status.WRONG_RESULT
    assert evidence(verdict)["first_wrong_index"] == "[1, 2]"


def test_bitwise_mode_refuses_the_last_bit():
    truth = reference(softmax, inputs())
    got = np.nextafter(truth.declared, np.float32(1))
    assert judge(truth, got.tobytes()).passed
    assert judge(truth, truth.declared.tobytes(), bitwise=True).passed
    assert judge(truth, got.tobytes(), bitwise=True).status is Status.WRONG_RESULT


def test_a_scalar_output_is_judged_too():
    truth = reference(mean_loss, inputs())
    assert truth.spec.shape == ()
    assert judge(truth, truth.declared.tobytes()).passed
    assert not judge(truth, (truth.declared * np.float32(1.0001)).tobytes()).passed


def test_an_ill_conditioned_case_allows_what_an_ulp_of_the_inputs_makes():
    exact, declared = np.zeros(64), np.zeros(64, dtype=np.float32)
    spec, noise = TensorSpec(shape=(64,), dtype=DType.F32), np.full(64, 1e-5, dtype=np.float32)
    assert not judge(make_reference(spec, exact, declared, None, []), noise.tobytes()).passed
    assert judge(make_reference(spec, exact, declared, -noise, []), noise.tobytes()).passed


def test_sixteen_bit_outputs_are_read_as_such():
    exact = np.linspace(-1, 1, 64)
    half = exact.astype(np.float16)
    truth = make_reference(TensorSpec(shape=(64,), dtype=DType.F16), exact, half, None, [])
    assert judge(truth, half.tobytes()).passed
    assert not judge(truth, np.zeros(64, dtype=np.float16).tobytes()).passed
    bits = (exact.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    truth = make_reference(TensorSpec(shape=(64,), dtype=DType.BF16), exact, bits, None, [])
    assert judge(truth, bits.tobytes()).passed
    assert not judge(truth, np.roll(bits, 1).tobytes()).passed


def test_garbage_of_any_size_is_wrong_without_a_warning():
    truth = reference(softmax, inputs())
    for fill in (np.nan, np.inf, 3e38, -3e38):
        got = np.full(truth.declared.size, fill, dtype=np.float32)
        assert judge(truth, got.tobytes()).status is Status.WRONG_RESULT
        assert not within(truth, got.tobytes())
