"""Results with strides: read as they are meant, from this very process; overlaps found exactly."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.hosted import memory, wire
from evaluator_svc.hosted.memory import Memory
from evaluator_svc.hosted.outputs import refused
from evaluator_svc.hosted.strided import Strided, overlap, overlaps_itself
from evaluator_svc.hosted.wire import Claim, Result
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType

SPEC = TensorSpec(shape=(3, 4), dtype=DType.F32)


def of(view):
    return Strided(view.__array_interface__["data"][0], view.shape, view.strides, view.itemsize)


def read(view):
    target = bytearray(view.size * view.itemsize)
    reader = Memory(os.getpid())
    try:
        reader.read(of(view), memoryview(target))
    finally:
        reader.close()
    return np.frombuffer(target, dtype=view.dtype).reshape(view.shape)


@st.composite
def views(draw):
    """Views that slicing and transposing make of one array."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    whole = np.arange(int(np.prod(shape)), dtype=draw(st.sampled_from([np.int8, np.float32, np.int64]))).reshape(shape)
    cut = tuple(slice(draw(st.integers(0, n - 1)), None, draw(st.integers(1, 3))) for n in shape)
    return whole[cut].transpose(draw(st.permutations(range(len(shape)))))


@given(views())
def test_a_view_is_read_element_by_element(view):
    np.testing.assert_array_equal(read(view), view)


@given(views())
def test_a_long_view_is_read_in_parts(view):
    most, memory.READ_BYTES = memory.READ_BYTES, 64
    try:
        np.testing.assert_array_equal(read(view), view)
    finally:
        memory.READ_BYTES = most


@given(views())
def test_views_do_not_overlap_themselves_and_expanded_values_do(view):
    assert not overlaps_itself(of(view))
    assert overlaps_itself(of(np.broadcast_to(view, (2, *view.shape))))


@given(st.integers(0, 7), st.integers(0, 7), st.integers(1, 3))
def test_two_views_overlap_exactly_when_they_share_an_element(one, other, step):
    whole = np.zeros((4, 8), dtype=np.float32)
    first, second = whole[:, one::step], whole[:, other::step]
    shared = bool({*range(one, 8, step)} & {*range(other, 8, step)})
    assert overlap(of(first), of(second)) is shared


def test_claims_that_spell_terabytes_are_not_looked_at_byte_by_byte():
    far = 1 << 45
    one, other = Strided(4096, (2,), (far,), 4), Strided(4096 + 64, (2,), (far,), 4)
    assert overlap(one, other)
    assert not overlap(one, Strided(4096 + far + 4, (2,), (4,), 4))


def test_memory_of_a_process_that_is_not_mapped_is_not_its_own():
    reader = Memory(os.getpid())
    own, file = np.zeros(1000), os.memfd_create("ke-inputs")
    try:
        assert reader.where(of(own), os.fstat(file)) is None
        assert "no memory of its own" in str(reader.where(Strided(4096, (1,), (4,), 4), os.fstat(file)))
        with pytest.raises(OSError):
            reader.read(Strided(4096, (1,), (4,), 4), memoryview(bytearray(4)))
    finally:
        os.close(file)
        reader.close()


def claimed(**fields):
    right = {"claim": Claim.TENSOR, "dtype": DType.F32.code, "ndim": 2, "address": 1 << 20, "shape": (3, 4),
             "strides": (4, 1)}  # fmt: skip
    return refused(Result(**{**right, **fields}), SPEC, 0, "")


def test_a_right_claim_is_not_refused():
    assert claimed() is None


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"dtype": -1}, "WRONG_DTYPE"),
        ({"dtype": 99}, "WRONG_DTYPE"),
        ({"dtype": DType.F64.code}, "WRONG_DTYPE"),
        ({"ndim": 3}, "WRONG_SHAPE"),
        ({"ndim": -1, "shape": (), "strides": ()}, "WRONG_SHAPE"),
        ({"shape": (4, 3)}, "WRONG_SHAPE"),
        ({"strides": (0, 1)}, "WRONG_SHAPE"),
        ({"strides": (-4, 1)}, "CHEAT"),
        ({"strides": (1 << 62, 1)}, "CHEAT"),
        ({"strides": ((1 << 46) - 1, 1)}, "CHEAT"),
        ({"address": 0}, "CHEAT"),
        ({"address": 1 << 63}, "CHEAT"),
        ({"claim": 77}, "CHEAT"),
        ({"claim": Claim.SUBCLASS}, "CHEAT"),
        ({"claim": Claim.MISSING}, "WRONG_SHAPE"),
    ],
)
def test_whatever_a_claim_says_it_is_refused_by_the_contract(fields, status):
    failed = claimed(**fields)
    assert failed is not None
    assert (failed.status.value, caught_by(failed.evidence)) == (status, Layer.CONTRACT)


@given(st.binary(min_size=1, max_size=300))
def test_no_page_is_beyond_reading(pattern):
    page = (pattern * wire.page_bytes(4))[: wire.page_bytes(4)]
    wire.read_text(page)
    wire.read_clock(page)
    for place in range(4):
        result = wire.unpack(page, place)
        refused(result, SPEC, 0, "")


def test_what_is_packed_is_unpacked():
    page = memoryview(bytearray(wire.page_bytes(2)))
    wire.forget(page, 2)
    result = Result(claim=0, dtype=0, ndim=2, address=4096, shape=(3, 4), strides=(4, 1))
    wire.pack(page, 1, result)
    wire.write_text(page, "two\nlines")
    wire.write_clock(page, 17)
    assert wire.unpack(bytes(page), 0) is None
    assert wire.unpack(bytes(page), 1) == result
    assert wire.read_text(bytes(page)) == "two?lines"
    assert wire.read_clock(bytes(page)) == 17
