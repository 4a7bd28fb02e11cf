"""The table of lowerings and what a lowering is given (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.graph import Call, Ref, TensorType
from synthesizer_svc.schedule.lazy import Builder, Lazy, compute_type


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """One ATen call with its environment."""

    call: Call
    builder: Builder
    values: dict[tuple[str, int], Lazy]

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self.call.arguments)

    def raw(self, name: str) -> object:
        """The argument as captured; None when the call has none of that name."""
        return next((value for key, value in self.call.arguments if key == name), None)

    def tensor(self, name: str) -> Lazy:
        value = self.raw(name)
        if not isinstance(value, Ref):
            raise self.builder.refuse(f"argument {name} is not a tensor")
        return self.resolve(value)

    def optional(self, name: str) -> Lazy | None:
        return None if self.raw(name) is None else self.tensor(name)

    def resolve(self, ref: Ref) -> Lazy:
        found = self.values.get((ref.name, ref.output))
        if found is None:
            raise self.builder.refuse(f"depends on {ref.name}, which has no value")
        return found

    def operand(self, name: str) -> Lazy:
        """A tensor, or a Python scalar as a zero-dimensional tensor of the result's type."""
        value = self.raw(name)
        if isinstance(value, Ref):
            return self.resolve(value)
        if isinstance(value, bool | int | float):
            return scalar(value)
        raise self.builder.refuse(f"argument {name} is neither a tensor nor a number")

    def number(self, name: str) -> float:
        value = self.raw(name)
        if not isinstance(value, bool | int | float):
            raise self.builder.refuse(f"argument {name} is not a number known at capture")
        return value

    def integer(self, name: str) -> int:
        return int(self.number(name))

    def integers(self, name: str) -> tuple[int, ...]:
        value = self.raw(name)
        if isinstance(value, int):
            return (value,)
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            raise self.builder.refuse(f"argument {name} is not a list of integers known at capture")
        return value

    def out(self, position: int = 0) -> TensorType:
        result = self.call.outputs[position]
        if result is None:
            raise self.builder.refuse("has no tensor result")
        return result


Lowering = Callable[[CallContext], "Lazy | tuple[Lazy, ...]"]
LOWERINGS: dict[str, Lowering] = {}
IGNORED = frozenset(
    {"_assert_async.msg", "_assert_scalar.default", "_assert_tensor_metadata.default", "sym_constrain_range.default"}
)


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register a lowering for ATen overloads, ``aten.`` left out."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            LOWERINGS[name] = function
        return function

    return register


def scalar(value: float) -> Lazy:
    """A Python number: bool, int64 or float64, as torch's weak scalars; casts fold it."""
    dtype = DType.BOOL if isinstance(value, bool) else DType.I64 if isinstance(value, int) else DType.F64
    return Lazy((), dtype, lambda _: ex.const(value, dtype), plain=True)


def cast(value: Expr, dtype: DType) -> Expr:
    """``value`` in the compute type of ``dtype``; rounds through 16 bits and wraps to small integers."""
    target = compute_type(dtype)
    if value.op == "const":
        number = value.attr
        if target is DType.BOOL:
            return ex.const(number != 0, DType.BOOL)
        finite = isinstance(number, int) or isfinite(number)
        if target.floating or finite:
            return ex.const(number, target)
    return value if value.dtype is target else ex.make("cast", value, dtype=target)
