"""Poison is unpredictable, different each time, and an element left alone is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.poison import POOL_BYTES, Poison


@pytest.mark.parametrize("nbytes", [4, 4096, POOL_BYTES + 4096])
def test_an_untouched_buffer_is_untouched_everywhere(nbytes):
    poison, buffer = Poison(), bytearray(nbytes)
    stain = poison.apply(memoryview(buffer))
    assert poison.untouched(stain, memoryview(buffer), 4).all()


def test_only_the_elements_left_alone_are_named():
    poison, buffer = Poison(), bytearray(4096)
    stain = poison.apply(memoryview(buffer))
    np.frombuffer(buffer, dtype=np.float32)[:1000] = 0.5
    assert np.flatnonzero(poison.untouched(stain, memoryview(buffer), 4)).tolist() == list(range(1000, 1024))


def test_two_applications_and_two_workers_differ():
    one, other, first, second, third = Poison(), Poison(), bytearray(4096), bytearray(4096), bytearray(4096)
    one.apply(memoryview(first))
    one.apply(memoryview(second))
    other.apply(memoryview(third))
    assert len({bytes(first), bytes(second), bytes(third)}) == 3
