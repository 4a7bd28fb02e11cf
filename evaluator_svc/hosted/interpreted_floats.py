"""bfloat16 in Triton's interpreter, which stores it as uint16 and then adds, compares and multiplies those numbers.

Seen with Triton 3.6.0, 3.7.1 and 3.9.0: ``a + b`` of two bfloat16 blocks is an integer sum, ``tl.dot`` is off by
1e11, and a cast from float32 cuts bits off where hardware rounds to nearest even. Here a bfloat16 block is held as
float32 whose values are bfloat16's; it is rounded after every operation, as the hardware does, and becomes 16 bits in
memory only. Of float8 loads, stores, casts to wider types and ``tl.dot`` are right; the rest is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from evaluator_svc.hosted.interpreter import NotInterpreted

Array = npt.NDArray[Any]


def widened(bits: Array) -> Array:
    """float32 of the bfloat16 in uint16 ``bits``."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: Array) -> Array:
    """uint16 bits of the bfloat16 nearest to float32 ``values``, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).reshape(np.shape(values))


def install() -> None:
    """Replace what is wrong of the interpreter's types, memory and operations."""
    _types()
    _memory()
    _casts()
    _operations()


def _is_bf16(dtype: Any) -> bool:
    return not isinstance(dtype, tl.pointer_type) and dtype.scalar == tl.bfloat16


def _is_fp8(dtype: Any) -> bool:
    return not isinstance(dtype, tl.pointer_type) and bool(dtype.scalar.is_fp8())


def _types() -> None:
    numpy_type, sizes_agree = interpreter._get_np_dtype, interpreter._validate_np_data_size  # noqa: SLF001

    known = {tl.bfloat16.name: np.dtype(np.float32)}

    def get_np_dtype(dtype: Any) -> Any:
        scalar = dtype.scalar
        if scalar.name not in known:  # the interpreter makes its whole table at every look
            known[scalar.name] = numpy_type(scalar)
        return known[scalar.name]

    def validate(array: Array, dtype: Any) -> bool:
        return array.itemsize <= np.float32().itemsize if _is_bf16(dtype) else sizes_agree(array, dtype)

    def check(self: Any) -> None:
        if not validate(self.data, self.dtype):
            raise ValueError(f"{self.data.dtype} is too wide for {self.dtype}")
        if _is_bf16(self.dtype) and self.data.dtype.kind == "f":
            self.data = widened(narrowed(self.data))

    interpreter._get_np_dtype, interpreter._validate_np_data_size = get_np_dtype, validate  # noqa: SLF001
    TensorHandle.__post_init__ = check
    InterpreterBuilder.get_bf16 = _bf16_constant


def _bf16_constant(self: Any, value: float) -> Any:
    del self
    return TensorHandle(np.array([value], dtype=np.float32), tl.bfloat16)


def _memory() -> None:
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store
    atomic, exchange = InterpreterBuilder.create_atomic_rmw, InterpreterBuilder.create_atomic_cas

    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
        if not _is_bf16(ptrs.get_element_ty()):
            return load(self, ptrs, mask, other, *rest, **named)
        instead = np.zeros(ptrs.data.shape, np.uint16) if other is None else narrowed(other.data)
        bits = native.load(ptrs.data, mask.data, instead, np.dtype(np.uint16))
        return TensorHandle(widened(bits), tl.bfloat16)

    def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        if not _is_bf16(ptrs.get_element_ty()):
            return store(self, ptrs, value, mask, *rest)
        return native.store(ptrs.data, narrowed(value.data), mask.data)

    def create_atomic_rmw(self: Any, operation: Any, ptr: Any, *rest: Any) -> Any:
        _refuse_narrow(ptr.get_element_ty(), "an atomic operation")
        return atomic(self, operation, ptr, *rest)

    def create_atomic_cas(self: Any, ptr: Any, *rest: Any) -> Any:
        _refuse_narrow(ptr.get_element_ty(), "an atomic operation")
        return exchange(self, ptr, *rest)

    InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store = (
        create_masked_load,
        create_masked_store,
    )
    InterpreterBuilder.create_atomic_rmw, InterpreterBuilder.create_atomic_cas = create_atomic_rmw, create_atomic_cas


def _casts() -> None:
    cast, convert, bitcast = (
        InterpreterBuilder.cast_impl,
        InterpreterBuilder.create_fp_to_fp,
        InterpreterBuilder.create_bitcast,
    )

    def cast_impl(self: Any, src: Any, to: Any) -> Any:
        if _is_fp8(src.dtype) or _is_fp8(to):
            return create_fp_to_fp(self, src, to, None)
        if _is_bf16(src.dtype) or _is_bf16(to):
            return TensorHandle(src.data.astype(interpreter._get_np_dtype(to)), to.scalar)  # noqa: SLF001
        return cast(self, src, to)

    def create_fp_to_fp(self: Any, src: Any, to: Any, rounding: Any) -> Any:
        if _is_fp8(to):
            raise NotInterpreted("rounding to float8 is not interpreted")
        if _is_bf16(to):
            wide = convert(self, src, tl.float32, None).data if _is_fp8(src.dtype) else src.data.astype(np.float32)
            if rounding == ir.ROUNDING_MODE.RTZ:
                wide = (wide.view(np.uint32) & 0xFFFF0000).view(np.float32)
            return TensorHandle(wide, tl.bfloat16)
        if _is_bf16(src.dtype):
            return cast_impl(self, src, to)
        return convert(self, src, to, rounding)

    def create_bitcast(self: Any, src: Any, to: Any) -> Any:
        if _is_bf16(to):
            return src if _is_bf16(src.dtype) else TensorHandle(widened(src.data.view(np.uint16)), tl.bfloat16)
        if _is_bf16(src.dtype):
            return TensorHandle(narrowed(src.data).view(interpreter._get_np_dtype(to)), to.scalar)  # noqa: SLF001
        return bitcast(self, src, to)

    InterpreterBuilder.cast_impl, InterpreterBuilder.create_fp_to_fp = cast_impl, create_fp_to_fp
    InterpreterBuilder.create_bitcast = create_bitcast


def _operations() -> None:
    absolute = InterpreterBuilder.create_fabs

    def create_fabs(self: Any, arg: Any) -> Any:
        return TensorHandle(np.abs(arg.data), tl.bfloat16) if _is_bf16(arg.dtype) else absolute(self, arg)

    InterpreterBuilder.create_fabs = create_fabs
    for name in ("binary_op", "unary_op", "ternary_op", "create_fma"):
        setattr(InterpreterBuilder, name, _refusing(getattr(InterpreterBuilder, name)))


def _refusing(operation: Callable[..., Any]) -> Callable[..., Any]:
    """``operation``, but not on float8, whose numbers are held as their bits. Choosing is no arithmetic."""

    def checked(self: Any, *args: Any) -> Any:
        if args[-1] is not np.where and any(_is_fp8(one.dtype) for one in args if isinstance(one, TensorHandle)):
            raise NotInterpreted("arithmetic on float8 is not interpreted")
        return operation(self, *args)

    return checked


def _refuse_narrow(dtype: Any, what: str) -> None:
    if _is_bf16(dtype) or _is_fp8(dtype):
        raise NotInterpreted(f"{what} on {dtype} is not interpreted")
