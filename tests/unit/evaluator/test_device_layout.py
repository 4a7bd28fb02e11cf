"""Where tensors lie in one allocation on a device."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.hosted.device_layout import ALIGNMENT, plan
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType


def specs(sizes):
    return [TensorSpec(shape=(size,), dtype=DType.U8) for size in sizes]


@given(st.lists(st.integers(0, 2000), max_size=4), st.integers(1, 5))
def test_tensors_are_aligned_and_share_no_byte(sizes, sets):
    layout = plan(specs(sizes), sets)
    places = sorted((layout.at(set_, index), size) for index, size in enumerate(sizes) for set_ in range(sets))
    assert all(at % ALIGNMENT == 0 for at, _ in places)
    assert all(at + size <= after for (at, size), (after, _) in itertools.pairwise(places))
    assert layout.nbytes >= max((at + size for at, size in places), default=1)


def test_a_byte_is_described_by_its_tensor_and_set():
    layout = plan(specs([100, 700]), 3)
    assert layout.where(layout.at(2, 1) + 5) == "byte 5 of input 1 of set 2"
    assert layout.where(layout.at(1, 0) + 104) == "byte 4 past the end of input 0 of set 1"
    assert layout.where(layout.nbytes) == "past the end of all inputs"


def test_nothing_at_all_can_be_allocated_too():
    assert plan([], 2).nbytes > 0
