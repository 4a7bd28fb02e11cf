"""Memory is looked at where it lies, and moves between here and a device only by name."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from evaluator_svc.arrays import assign, beside, chunk, contiguous, equal, flat, largest, namespace, on_device, on_host
from tests.fakes.device_arrays import NAMESPACE, DeviceArray, device

DATA = np.arange(24, dtype=np.uint8)
PLACES = {"bytes": bytes, "an array": np.array, "a device": device}
TARGETS = {"a buffer": lambda: memoryview(bytearray(24)), "an array": lambda: np.zeros((2, 3), np.int32),
           "a device": lambda: device(np.zeros((2, 3), np.int32))}  # fmt: skip


def read(data):
    return bytes(data.get() if isinstance(data, DeviceArray) else data)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_bytes_are_written_from_anywhere_to_anywhere(target, place):
    to = target()
    assign(to, place(DATA))
    assert read(to) == DATA.tobytes()
    with pytest.raises(ValueError, match="23 bytes for 24"):
        assign(to, place(DATA[:23]))


def test_a_flat_view_is_no_copy():
    for make in (np.array, device):
        whole = make(np.zeros((2, 4), np.float32))
        flat(whole)[3] = 0x40
        assert read(whole)[3] == 0x40


def test_what_is_not_contiguous_has_no_flat_view():
    for make in (np.array, device):
        with pytest.raises(ValueError, match="contiguous"):
            flat(make(np.zeros((4, 4), np.float32))[:, :2])


def test_equal_bytes_are_equal_and_nan_is_what_it_holds():
    values = np.array([1.0, np.nan, -0.0], np.float32)
    for make in (np.array, device):
        assert equal(make(values), make(values))
        assert not equal(make(values), make(np.abs(values)))
        assert not equal(make(values), make(values[:2]))
    assert equal(b"", b"")


def test_an_array_made_beside_another_lies_where_that_lies():
    assert beside(DATA, np.zeros(1)) is DATA
    moved = beside(DATA, device(np.zeros(1)))
    assert isinstance(moved, DeviceArray)
    assert np.array_equal(on_host(moved), DATA)
    assert on_host(DATA) is DATA
    assert isinstance(contiguous(device(np.zeros((3, 3)))[:, :2]), DeviceArray)


def test_the_module_of_a_devices_arrays_is_found_without_importing_it(monkeypatch):
    assert namespace(DATA) is np
    assert namespace(device(DATA)) is NAMESPACE
    module = types.ModuleType("some_device")
    monkeypatch.setitem(sys.modules, "some_device", module)
    kind = type("ndarray", (), {"__module__": "some_device._core", "dtype": None, "get": None})
    assert namespace(kind()) is module
    assert on_device(kind())
    assert chunk(kind()) > chunk(DATA)


def test_nothing_has_no_largest_and_nan_is_the_largest():
    for make in (np.array, device):
        assert largest(make(np.zeros(0))) == 0.0
        assert largest(make(np.array([1.0, 3.0, 2.0]))) == 3.0
        assert np.isnan(largest(make(np.array([1.0, np.nan]))))


@pytest.mark.parametrize(
    "misuse",
    [
        np.asarray, memoryview, bytes, lambda one: one.tobytes(), np.frombuffer, lambda one: one + DATA,
        lambda one: DATA + one, lambda one: np.logical_and.reduce([one, one]), lambda one: one[np.arange(2)],
        lambda one: np.einsum("i,i->", one, one), lambda one: np.array_equal(one, DATA), np.ascontiguousarray,
        lambda one: one.__setitem__(slice(2), DATA[:2]), lambda one: one.max(initial=0),
    ],
)  # fmt: skip
def test_the_double_refuses_what_devices_refuse(misuse):
    with pytest.raises(TypeError):
        misuse(device(DATA))
