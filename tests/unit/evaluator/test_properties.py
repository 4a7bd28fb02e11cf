"""Relations between a kernel's own outputs: related inputs are exact, right kernels keep to them, wrong ones do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator_svc.cases import Case, elements, make_reference, narrowed, widened
from evaluator_svc.properties import GRID_BITS, Kind, Relation, broken, hypotheses
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from tests.unit.evaluator.references import softmax

FLOATING = (DType.F64, DType.F32, DType.F16, DType.BF16)


def case(values, dtype=DType.F32, answer=None):
    spec = TensorSpec(shape=values.shape, dtype=dtype)
    stored = narrowed(values, dtype)
    references = ()
    if answer is not None:
        exact, declared = answer(values.astype(np.float64)), answer(values.astype(np.float32))
        shape = TensorSpec(shape=exact.shape, dtype=DType.F32)
        references = (make_reference(shape, exact.reshape(-1), declared.astype("f4").reshape(-1), None, []),)
    data = np.ascontiguousarray(stored).view(np.uint8).reshape(-1)
    return Case(name="", public=True, specs=(spec,), inputs=(data,), references=references)


def drawn(seed, shape=(8, 12), scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(dtype=st.sampled_from(FLOATING), seed=SEEDS, power=st.integers(-8, 8))
def test_what_is_doubled_subtracted_and_shifted_is_exact_in_every_type(dtype, seed, power):
    one = case(drawn(seed % 97, scale=2.0**power), dtype)
    for kind in (Kind.AFFINE, Kind.HOMOGENEOUS, Kind.SHIFTED):
        variants = Relation(kind=kind, where=((0, 0),)).variants(one, seed)
        x, *others = (widened(variant[0], dtype) for variant in variants)
        if kind is Kind.AFFINE:
            z, combined = others
            assert np.array_equal(np.sort(z.reshape(-1)), np.sort(x.reshape(-1)))
            assert np.array_equal(combined, 2 * x - z)
        elif kind is Kind.HOMOGENEOUS:
            assert np.array_equal(others[0], 2 * x)
        else:
            shifts = np.unique(others[0] - x)
            assert shifts.size == 1
            assert shifts[0] > 0
        assert np.abs(x - widened(elements(one.inputs[0], dtype), dtype).reshape(x.shape)).max() <= (
            np.abs(x).max() * 2.0 ** (1 - GRID_BITS[dtype])
        )


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, rows=st.integers(2, 9), columns=st.integers(2, 9))
def test_permuted_inputs_have_the_same_elements_and_rows_that_stay_are_the_same(seed, rows, columns):
    x = drawn(seed % 89, (rows, columns))
    given_, permuted = Relation(kind=Kind.PERMUTED, where=((0, 1),), axis=1).variants(case(x), seed)
    assert np.array_equal(np.sort(permuted[0], axis=1), np.sort(given_[0], axis=1))
    given_, mixed = Relation(kind=Kind.INDEPENDENT, where=((0, 0),), axis=0).variants(case(x), seed)
    assert all(any(np.array_equal(row, other) for other in given_[0]) for row in mixed[0])


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, rows=st.integers(2, 5))
def test_no_related_input_is_the_input_itself(seed, rows):
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    for kind in (Kind.PERMUTED, Kind.INDEPENDENT):
        given_, other = Relation(kind=kind, where=((0, 0),), axis=0).variants(case(x), seed)
        same = (given_[0] == other[0]).all(axis=1)
        assert not same.all()
        assert same.any() == (kind is Kind.INDEPENDENT)


KEPT = {
    "softmax": (softmax, [
        Relation(kind=Kind.SHIFTED, where=((0, 0),)),
        Relation(kind=Kind.PERMUTED, where=((0, 1),), axis=1),
        Relation(kind=Kind.INDEPENDENT, where=((0, 0),), axis=0),
        Relation(kind=Kind.ROW_SUM, constant=1.0),
    ]),
    "row sum": (lambda x: x.sum(axis=-1), [
        Relation(kind=Kind.AFFINE, where=((0, 0),)),
        Relation(kind=Kind.HOMOGENEOUS, where=((0, 0),), degree=1),
        Relation(kind=Kind.PERMUTED, where=((0, 1),), axis=None),
        Relation(kind=Kind.PERMUTED, where=((0, 0),), axis=0),
    ]),
    "square": (lambda x: x * x, [Relation(kind=Kind.HOMOGENEOUS, where=((0, 0),), degree=2)]),
    "running sum": (lambda x: np.cumsum(x, axis=-1), [Relation(kind=Kind.AFFINE, where=((0, 0),))]),
}  # fmt: skip
PAIRS = [(name, relation) for name, (_, relations) in KEPT.items() for relation in relations]


def outputs(one, relation, seed, compute):
    variants = relation.variants(one, seed)
    return [[np.ascontiguousarray(compute(inputs[0]).astype(np.float32)).view(np.uint8)] for inputs in variants]


@pytest.mark.parametrize(("name", "relation"), PAIRS, ids=[f"{name}: {relation.name}" for name, relation in PAIRS])
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, rows=st.integers(2, 70), columns=st.integers(2, 300))
def test_a_right_kernel_is_never_said_to_break_what_its_operator_keeps_to(name, relation, seed, rows, columns):
    compute = KEPT[name][0]
    one = case(drawn(seed % 101, (rows, columns)), answer=compute)
    assert broken(relation, one, outputs(one, relation, seed, compute), seed) is None


@pytest.mark.parametrize(("name", "relation"), PAIRS, ids=[f"{name}: {relation.name}" for name, relation in PAIRS])
def test_a_kernel_that_follows_its_inputs_only_in_part_breaks_them(name, relation):
    compute = KEPT[name][0]
    one = case(drawn(5, (16, 40)), answer=compute)

    def in_part(x):
        y = compute(x).copy()
        y[::3] = y[::3] * 1.01 + np.abs(x).max() * 1e-2 * (x[0, 0] > x[1, 1]) + 0.05 * np.sin(3 * x[-1, -1])
        return y

    assert broken(relation, one, outputs(one, relation, 77, in_part), 77) is not None


def test_nan_breaks_every_relation():
    one = case(drawn(5), answer=softmax)
    for relation in KEPT["softmax"][1]:
        given_ = outputs(one, relation, 3, lambda x: np.full_like(x, np.nan))
        assert broken(relation, one, given_, 3) is not None


def test_related_inputs_are_looked_for_within_axes_of_one_and_of_two_inputs():
    specs = (TensorSpec(shape=(4, 5), dtype=DType.F32), TensorSpec(shape=(5, 6), dtype=DType.F32))
    found = list(hypotheses(specs, (TensorSpec(shape=(4, 6), dtype=DType.F32),)))
    where = {relation.where for alike in found for relation in alike if relation.kind is Kind.PERMUTED}
    assert where == {((0, 0),), ((0, 1),), ((1, 0),), ((1, 1),), ((0, 1), (1, 0))}
    assert all(len({(one.kind, one.where) for one in alike}) <= 1 for alike in found)


def test_integer_outputs_have_no_rounding_to_hide_in():
    spec = TensorSpec(shape=(8,), dtype=DType.I64)
    x = drawn(5)
    best = x.argmax(axis=-1)
    reference = make_reference(spec, best, best, None, [])
    one = Case(name="", public=True, specs=case(x).specs, inputs=case(x).inputs, references=(reference,))
    relation = Relation(kind=Kind.PERMUTED, where=((0, 0),), axis=0)
    first, second = (inputs[0].argmax(axis=-1) for inputs in relation.variants(one, 9))
    assert broken(relation, one, [[first.view(np.uint8)], [second.view(np.uint8)]], 9) is None
    second[3] += 1
    assert broken(relation, one, [[first.view(np.uint8)], [second.view(np.uint8)]], 9) is not None
