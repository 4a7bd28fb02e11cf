"""What judges gives the same verdicts where the arrays lie on a device, and brings no more than scalars from there."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from evaluator_svc import arrays
from evaluator_svc.cases import Demand, elements, make_reference, narrowed, widened
from evaluator_svc.judge import judge, near, within
from evaluator_svc.mutants import mutants
from evaluator_svc.mutation import Killing, accepts, coverage
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from tests.fakes.device_arrays import DeviceArray, device
from tests.unit.evaluator.placed import KINDS, Kind, case, truth

pytestmark = pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
FEW = 4096
"""Bytes that come from a device for one verdict: scalars, and a sample where an error is told."""
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture(autouse=True)
def _several_chunks(monkeypatch):
    monkeypatch.setattr(arrays, "CHUNK", 64)
    monkeypatch.setattr(arrays, "DEVICE_CHUNK", 100)


def answers(kind):
    """The right answer and every mutant of it, and others that are wrong in one way each."""
    reference = truth(kind)
    right = reference.declared
    yield "right", right.view(np.uint8)
    yield from mutants(reference)
    if kind.dtype.floating:
        values = np.where(np.isfinite(reference.exact), reference.exact, 0.5)
        noise = np.random.default_rng(5).standard_normal(values.size)
        for size in (1e-7, 1e-5, 1e-3):
            yield f"off by {size:g}", narrowed(values * (1 + size * noise), kind.dtype).view(np.uint8)
        last = narrowed(values, kind.dtype)
        last[-1] += 1 if kind.dtype is DType.BF16 else np.asarray(0.4, last.dtype)
        yield "last element off", last.view(np.uint8)


def same(one, other):
    """Whether two references are the same, wherever they lie."""
    for field in fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(theirs, DeviceArray):
            assert np.array_equal(mine.view(np.uint8), theirs.get().view(np.uint8)), field.name
        elif isinstance(mine, float):
            assert mine == pytest.approx(theirs, rel=1e-12, nan_ok=True), field.name
        elif field.name == "low":
            assert [(low.name, low.whole) for low in mine] == [(low.name, low.whole) for low in theirs]
            assert [low.rmse for low in mine] == pytest.approx([low.rmse for low in theirs], rel=1e-12)
            assert [low.max_error for low in mine] == [low.max_error for low in theirs]
        else:
            assert mine == theirs, field.name


@every_kind
def test_a_reference_is_measured_alike(kind):
    same(truth(kind), truth(kind, device))


@every_kind
def test_verdicts_and_their_evidence_are_alike(kind):
    mine, theirs = truth(kind), truth(kind, device)
    for name, data in answers(kind):
        given = device(data)
        for bitwise in (False, True):
            assert judge(mine, data, bitwise=bitwise) == judge(theirs, given, bitwise=bitwise), name
        assert within(mine, data) == within(theirs, given), name
        assert accepts(mine, data) == accepts(theirs, given), name


@every_kind
def test_many_outputs_are_compared_alike(kind):
    rows = np.stack([data for _, data in answers(kind)])
    mine, theirs = near(truth(kind), rows), near(truth(kind, device), device(rows))
    assert isinstance(theirs, np.ndarray)
    assert np.array_equal(mine, theirs)
    assert mine[0]


@every_kind
def test_mutants_are_the_same_values(kind):
    mine, theirs = dict(mutants(truth(kind))), dict(mutants(truth(kind, device)))
    assert list(mine) == list(theirs)
    for name, data in theirs.items():
        values = [widened(elements(one, kind.dtype), kind.dtype) for one in (mine[name], data.get())]
        assert np.array_equal(*values, equal_nan=kind.dtype.floating), name


def test_a_mutant_that_changes_nothing_is_none_though_a_device_changes_the_bits_of_nan():
    reference = truth(replace(KINDS["special values"], shape=(1, 480)), device)
    names = {name for name, _ in mutants(reference)}
    assert {"two rows swapped", "every row is the first", "transposed"}.isdisjoint(names)


@every_kind
def test_the_same_mutants_are_killed_by_the_same_cases(kind):
    def killed(place):
        cases = [case(kind, place, seed, f"case {seed}") for seed in (1, 2)]
        killing = Killing({})
        for number, one in enumerate(cases):
            killing.outputs(number, one, cases[1 - number])
        return killing.score(), killing.core, coverage(cases)

    assert killed(lambda array: array) == killed(device)


@pytest.mark.parametrize("demand", [Demand.LIMITS, Demand.BITS])
def test_of_a_right_output_only_scalars_come_from_the_device(demand):
    kind = Kind(dtype=DType.F32, shape=(100, 400), demand=demand)
    reference, size = truth(kind, device), 40_000
    given = device(reference.declared.get())
    arrays.DEVICE_CHUNK = size // 4
    before = DeviceArray.fetched
    assert judge(reference, given.view(np.uint8)).passed
    assert within(reference, given.view(np.uint8))
    assert DeviceArray.fetched - before < FEW


def test_the_first_wrong_element_is_named_and_no_more_of_the_output_is_fetched():
    kind = Kind(dtype=DType.F32, shape=(100, 400))
    reference = truth(kind, device)
    wrong = reference.declared.get()
    wrong[20_123:20_130] = 3.0
    arrays.DEVICE_CHUNK = 10_000
    verdict = judge(replace(reference, low=()), device(wrong.view(np.uint8)))
    told = {entry.name: entry.value for entry in verdict.evidence}
    assert (told["first_wrong_index"], told["got"], told["wrong_elements"]) == ("[50, 123]", "3", "7 of 40000")


def test_an_output_elsewhere_than_its_reference_is_no_verdict_but_an_error():
    kind = KINDS["float32"]
    with pytest.raises(TypeError):
        judge(truth(kind, device), truth(kind).declared.view(np.uint8))
    with pytest.raises(TypeError):
        judge(truth(kind), truth(kind, device).declared.view(np.uint8))


def test_a_reference_that_holds_nothing_finite_is_measured_alike():
    values, spec = np.full(200, np.nan), TensorSpec(shape=(200,), dtype=DType.F32)
    one = make_reference(spec, values, values.astype(np.float32), None, [])
    same(one, make_reference(spec, device(values), device(values.astype(np.float32)), None, []))
