"""A strict double of CuPy's arrays: they keep to NumPy's protocols, and refuse everything that CuPy's refuse.

What they hold can be computed with where it is, with others of their kind and with scalars. It never becomes NumPy's by
accident: no ``__array__``, no buffer, no ``bytes``, no mixing. ``fetched`` counts the bytes that came to the host.
"""

from __future__ import annotations

import types

import numpy as np
from numpy.lib.stride_tricks import as_strided

SCALARS = (bool, int, float, np.generic)
FUNCTIONS = frozenset({
    "argmax", "argmin", "array_equal", "broadcast_to", "count_nonzero", "full_like", "roll", "round", "swapaxes",
    "where", "zeros_like",
})  # fmt: skip
"""Functions of NumPy that are dispatched and that CuPy has."""


class DeviceArray:
    """Elements on a device that is none."""

    __hash__ = None
    fetched = 0

    def __init__(self, held):
        self._held = held

    dtype = property(lambda self: self._held.dtype)
    shape = property(lambda self: self._held.shape)
    ndim = property(lambda self: self._held.ndim)
    size = property(lambda self: self._held.size)
    nbytes = property(lambda self: self._held.nbytes)
    flags = property(lambda self: self._held.flags)

    def get(self, out=None):
        DeviceArray.fetched += self.nbytes
        if out is None:
            return self._held.copy()
        if type(out) is not np.ndarray or out.dtype != self.dtype or out.shape != self.shape:
            raise TypeError("out must be NumPy's, of the same shape and type")
        out[...] = self._held
        return out

    def set(self, array):
        if type(array) is not np.ndarray or array.dtype != self.dtype or array.shape != self.shape:
            raise TypeError("only NumPy's arrays of the same shape and type can be set")
        self._held[...] = array

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __bytes__(self):
        raise TypeError("no bytes of a device")

    def tobytes(self):
        raise TypeError("no bytes of a device")

    def __array_namespace__(self):
        return NAMESPACE

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        if method != "__call__" or kwargs:
            return NotImplemented
        held = tuple(one._held for one in out)
        result = _wrapped(ufunc(*map(_operand, inputs), **({"out": held} if held else {})))
        return out[0] if out else result

    def __array_function__(self, func, kinds, args, kwargs):
        if func.__name__ not in FUNCTIONS:
            return NotImplemented
        given = [_operand(one) if isinstance(one, (DeviceArray, np.ndarray)) else one for one in args]
        return _wrapped(func(*given, **{name: _operand(one) for name, one in kwargs.items()}))

    def astype(self, dtype, copy=True):
        made = self._held.astype(dtype, copy=copy)
        if made.dtype.kind == "f" and made.dtype != self.dtype:  # a GPU converts every NaN to this one
            made.view(f"u{made.dtype.itemsize}")[np.isnan(made)] = 2 ** (8 * made.dtype.itemsize - 1) - 1
        return _wrapped(made)

    def view(self, dtype):
        if np.dtype(dtype).itemsize != self.dtype.itemsize and not self.flags.c_contiguous:
            raise ValueError("the array must be C-contiguous")
        return _wrapped(self._held.view(dtype))

    def reshape(self, *shape):
        return _wrapped(self._held.reshape(*shape))

    def copy(self):
        return _wrapped(self._held.copy())

    def take(self, indices, axis=None):
        return _wrapped(self._held.take(_on_device(indices), axis=axis))

    def max(self, axis=None):
        return _wrapped(self._held.max(axis=axis))

    def sum(self, axis=None):
        return _wrapped(self._held.sum(axis=axis))

    def mean(self):
        return _wrapped(self._held.mean())

    def std(self):
        return _wrapped(self._held.std())

    def all(self):
        return _wrapped(self._held.all())

    def any(self):
        return _wrapped(self._held.any())

    def __getitem__(self, key):
        held, key = self._held, _key(key)
        found = held[key]
        if isinstance(found, np.generic):  # CuPy's elements are arrays without axes, views of where they lie
            found = held[(*key, ...) if isinstance(key, tuple) else (key, ...)]
        return _wrapped(found)

    def __setitem__(self, key, value):
        self._held[_key(key)] = _operand(value)

    def __len__(self):
        return len(self._held)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        return bool(self.get())

    def __int__(self):
        return int(self.get())

    def __float__(self):
        return float(self.get())

    def __neg__(self):
        return np.negative(self)

    def __invert__(self):
        return np.invert(self)


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    setattr(DeviceArray, f"__{_name}__", lambda self, other, ufunc=_ufunc: ufunc(self, other))
    setattr(DeviceArray, f"__r{_name}__", lambda self, other, ufunc=_ufunc: ufunc(other, self))
    setattr(DeviceArray, f"__i{_name}__", lambda self, other, ufunc=_ufunc: ufunc(self, other, out=self))
for _name, _ufunc in {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}.items():  # fmt: skip
    setattr(DeviceArray, f"__{_name}__", lambda self, other, ufunc=_ufunc: ufunc(self, other))
DeviceArray.__hash__ = None


def device(array):
    """A copy of NumPy's ``array`` on the device; None stays."""
    return None if array is None else DeviceArray(np.array(array))


def _operand(one):
    if isinstance(one, DeviceArray):
        return one._held
    if isinstance(one, SCALARS):
        return one
    raise TypeError(f"Unsupported type {type(one)}")


def _on_device(one):
    if not isinstance(one, DeviceArray):
        raise TypeError(f"Unsupported type {type(one)}")
    return one._held


def _key(key):
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    if key is None or key is ... or isinstance(key, (int, slice)):
        return key
    return _on_device(key)


def _wrapped(result):
    return DeviceArray(np.asarray(result))


def _asarray(one):
    return one if isinstance(one, DeviceArray) else device(one)


def _strided(one, shape, strides):
    return DeviceArray(as_strided(_on_device(one), shape=shape, strides=strides))


NAMESPACE = types.SimpleNamespace(
    asarray=_asarray,
    ascontiguousarray=lambda one: DeviceArray(np.ascontiguousarray(_on_device(one))),
    lib=types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=_strided)),
)
