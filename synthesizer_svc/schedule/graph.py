"""The captured operator: a frozen graph of core ATen calls, free of torch (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from shared.dtypes import DType
from shared.errors import KernelEvolveError


class Unsupported(KernelEvolveError):
    """The operator cannot be captured or lowered. ``node`` names the ATen call (or the stage), ``why`` the reason."""

    def __init__(self, node: str, why: str) -> None:
        self.node, self.why = node, why
        super().__init__(f"{node}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """Static type of a tensor. ``strides`` count elements."""

    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A use of the ``output``-th tensor of call ``name``."""

    name: str
    output: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A kernel input: user inputs in order, then parameters and buffers in state-dict order."""

    name: str
    type: TensorType


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One ATen call. ``arguments`` are named by the schema, defaults included; ``outputs`` has None for non-tensors."""

    name: str
    op: str
    arguments: tuple[tuple[str, object], ...]
    outputs: tuple[TensorType | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Calls in order of execution; ``outputs`` in the order of the operator's results."""

    inputs: tuple[Input, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Ref, ...]
