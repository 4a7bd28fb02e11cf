"""Poison is unpredictable, different each time, and an element left alone is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.poison import POOL_BYTES, Poison
from shared.dtypes import DType


@pytest.mark.parametrize("nbytes", [4, 4096, POOL_BYTES + 4096])
def test_an_untouched_buffer_is_untouched_everywhere(nbytes):
    poison, buffer = Poison(), bytearray(nbytes)
    stain = poison.apply(memoryview(buffer))
    assert all(part.all() for part in poison.untouched(stain, memoryview(buffer), 4))


def test_only_the_elements_left_alone_are_named():
    poison, buffer = Poison(), bytearray(4096)
    stain = poison.apply(memoryview(buffer))
    np.frombuffer(buffer, dtype=np.float32)[:1000] = 0.5
    assert np.flatnonzero(np.concatenate(list(poison.untouched(stain, memoryview(buffer), 4)))).tolist() == list(
        range(1000, 1024)
    )


@pytest.mark.parametrize("shape", [(1, 4096), (3000, 64), (5, 1 << 17)])
def test_rows_that_were_left_alone_are_untouched_and_all_differ(shape):
    poison, whole = Poison(), np.zeros((shape[0], shape[1] + 64), dtype=np.uint8)
    rows = whole[:, 64:]
    stains = poison.apply_rows(rows)
    assert len(stains) == shape[0]
    for row, stain in list(zip(rows, stains, strict=True))[:: max(1, shape[0] // 50)]:
        assert all(part.all() for part in poison.untouched(stain, memoryview(row), 4))
    assert len({row.tobytes() for row in rows}) == shape[0]
    assert not whole[:, :64].any()


def test_two_applications_and_two_workers_differ():
    one, other, first, second, third = Poison(), Poison(), bytearray(4096), bytearray(4096), bytearray(4096)
    one.apply(memoryview(first))
    one.apply(memoryview(second))
    other.apply(memoryview(third))
    assert len({bytes(first), bytes(second), bytes(third)}) == 3


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_nudged_values_differ_in_their_last_bit_only_and_round_numbers_stay(kind):
    values = np.random.default_rng(1).standard_normal(100_000).astype(kind)
    values[::10] = [0.0, 1.0, -0.5, np.inf, -2.0] * 2000
    nudged = values.copy()
    dtype = DType.F32 if kind is np.float32 else DType.F64
    Poison().nudge(memoryview(nudged).cast("B"), dtype)
    assert np.array_equal(nudged[::10], values[::10])
    assert 0.3 < np.mean(nudged != values) < 0.6
    with np.errstate(invalid="ignore"):
        assert np.nanmax(np.abs(nudged - values) / np.spacing(np.abs(values))) <= 1


def test_integers_are_not_nudged():
    values = np.arange(1000)
    Poison().nudge(memoryview(values).cast("B"), DType.I64)
    assert np.array_equal(values, np.arange(1000))
