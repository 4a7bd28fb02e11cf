"""A large output is compared in little memory, whatever is wrong with it."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from evaluator_svc.cases import Demand, Reference, make_reference
from evaluator_svc.judge import judge, within
from evaluator_svc.mutation import accepts
from evaluator_svc.poison import Poison
from evaluator_svc.repeatability import first_difference
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.written import counted, over_runs
from shared.dtypes import DType

SHAPE = (8192, 8192)
NBYTES = 4 * SHAPE[0] * SHAPE[1]
SHARE = 0.05


@pytest.fixture(scope="module")
def truth() -> Reference:
    """256 MiB of float32. Its truth is one row for all of them, without memory of its own."""
    row = np.random.default_rng(1).standard_normal(SHAPE[1])
    exact = np.broadcast_to(row.astype(np.float32).astype(np.float64), SHAPE)
    declared = np.broadcast_to(row.astype(np.float32), SHAPE)
    return Reference(
        spec=TensorSpec(shape=SHAPE, dtype=DType.F32), exact=Flat(exact), declared=Flat(declared), finite=True,
        rmse=1e-8, max_error=1e-7, scale_rms=1.0, scale_max=float(np.abs(row).max()),
    )  # fmt: skip


class Flat:
    """A flat view of rows that are all the same, made where it is looked at."""

    def __init__(self, rows):
        self._row, self.size, self.dtype = np.ascontiguousarray(rows[0]), rows.size, rows.dtype

    def __getitem__(self, part):
        start, stop, _ = part.indices(self.size)
        return np.take(self._row, np.arange(start, stop) % self._row.size)


@pytest.fixture(scope="module")
def output(truth):
    return np.tile(truth.declared[0 : SHAPE[1]], SHAPE[0])


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("check", [judge, within, accepts], ids=["judge", "quick bound", "admission"])
def test_comparing_takes_less_than_a_twentieth_of_the_output_more(truth, output, check):
    found = []
    assert peak(lambda: found.append(check(truth, output.view(np.uint8)))) <= SHARE * NBYTES
    assert found[0] is True or found[0].passed


@pytest.mark.parametrize("demand", [Demand.BITS, Demand.FINITE_PART, Demand.LIMITS])
def test_a_wrong_last_element_is_found_in_as_little(truth, output, demand):
    other = replace(truth, demand=demand, finite=demand is not Demand.FINITE_PART)
    kept, output[-1] = output[-1], np.nan
    found = []
    assert peak(lambda: found.append(judge(other, output.view(np.uint8)))) <= SHARE * NBYTES
    output[-1] = kept
    assert not found[0].passed


def test_measuring_a_reference_takes_no_more(truth, output):
    assert peak(lambda: make_reference(truth.spec, truth.exact, output, None, [])) <= SHARE * NBYTES


def test_looking_for_poison_and_for_differences_takes_no_more(output):
    poison, buffer = Poison(), memoryview(output.copy()).cast("B")
    stain = poison.apply(buffer)
    assert peak(lambda: counted(poison.untouched(stain, buffer, 4))) <= SHARE * NBYTES
    assert peak(lambda: over_runs([poison.untouched(stain, buffer, 4) for _ in range(3)])) <= SHARE * NBYTES
    assert peak(lambda: first_difference(output.view(np.uint8), output.view(np.uint8))) <= SHARE * NBYTES
