"""Arrays wherever they lie: what differs between NumPy's, in this process' memory, and a device's (pure).

The code that judges is written against NumPy's API. An array of a device (CuPy's, or any class that keeps to NumPy's
protocols ``__array_ufunc__`` and ``__array_function__`` and has ``get``) runs through the same code where it lies, and
only scalars come back. Such arrays refuse to become NumPy's by accident, have no buffer and do not mix with NumPy's:
what moves between the two is moved here, by name.

Not dispatched, and so asked of ``namespace``: ``asarray``, ``ascontiguousarray``, ``as_strided``. Not had by devices:
``max(initial=)`` and reductions of ufuncs. What a device's library has a kernel of its own for (``same_bytes`` here,
``nearness.rows_near``) it registers by the class of its arrays.
"""

from __future__ import annotations

import sys
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 15
"""Elements compared at a time: what a comparison makes stays in the second-level cache whatever the output's size."""
DEVICE_CHUNK = 1 << 24
"""The same on a device, where a launch costs microseconds: a fraction of its memory, and few launches."""

Array = NDArray[Any]
"""NumPy's, or a device's that is used like one."""
Bytes = bytes | bytearray | memoryview | NDArray[np.uint8]
"""Raw memory: a buffer of this process, or an array of bytes, here or on a device."""


def on_device(array: object) -> bool:
    """Whether ``array`` is a device's."""
    return not isinstance(array, np.ndarray) and hasattr(array, "get") and hasattr(array, "dtype")


def namespace(array: object) -> Any:
    """The module whose functions make arrays where ``array`` lies: NumPy, or the one its class comes from."""
    if not on_device(array):
        return np
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules[type(array).__module__.partition(".")[0]]


def chunk(array: object) -> int:
    """Elements to take at a time where ``array`` lies."""
    return DEVICE_CHUNK if on_device(array) else CHUNK


def flat(data: Bytes) -> Array:
    """``data`` as a flat array of its bytes, without a copy, where it is.

    Raises:
        ValueError: it is not contiguous.
    """
    if not on_device(data):
        return np.frombuffer(data, dtype=np.uint8)
    array: Array = data  # type: ignore[assignment]
    if not array.flags.c_contiguous:
        raise ValueError("an array that is not contiguous has no flat view")
    return array.reshape(-1).view(np.uint8)


def on_host(array: Array) -> Array:
    """``array`` in this process' memory: a copy of a device's, NumPy's itself. For small things, like one element."""
    found: Array = array.get() if on_device(array) else array  # type: ignore[attr-defined]
    return found


def beside(data: Array, array: Array) -> Array:
    """``data``, NumPy's, where ``array`` lies: itself, or a copy on the device."""
    moved: Array = namespace(array).asarray(data)
    return moved


def contiguous(array: Array) -> Array:
    """``array`` itself, or a contiguous copy beside it."""
    found: Array = namespace(array).ascontiguousarray(array)
    return found


def assign(target: Bytes, data: Bytes) -> None:
    """Write ``data`` over ``target`` (contiguous, writable, of as many bytes), wherever each lies.

    Raises:
        ValueError: the sizes differ.
    """
    to, given = flat(target), flat(data)
    if to.size != given.size:
        raise ValueError(f"{given.size} bytes for {to.size}")
    if on_device(to) == on_device(given):
        to[...] = given
    elif on_device(to):
        to.set(given)  # type: ignore[attr-defined]
    elif given.size:
        given.get(out=to)  # type: ignore[attr-defined]


def equal(one: Bytes, other: Bytes) -> bool:
    """Whether two lots of memory in the same place hold the same bytes, a chunk at a time."""
    first, second = flat(one), flat(other)
    return first.size == second.size and same_bytes(first, second)


@singledispatch
def same_bytes(first: Any, second: Any) -> bool:
    """``equal`` for flat arrays of bytes, of one size and in one place."""
    step = 8 * chunk(first)
    return all(
        bool(np.array_equal(first[start : start + step], second[start : start + step]))
        for start in range(0, first.size, step)
    )


def largest(sizes: Array) -> float:
    """The largest of what has no sign, 0 of nothing, NaN where one is."""
    return float(sizes.max()) if sizes.size else 0.0


def squares(values: Array) -> float:
    """The sum of their squares, in float64."""
    if on_device(values):
        wide = values.astype(np.float64)
        wide *= wide
        return float(wide.sum())
    # Not a dot product: that wakes the threads of a BLAS, which then spin on cores that are being timed.
    return float(np.einsum("i,i->", values, values, dtype=np.float64))
