"""Where tensors lie in one allocation on a device (pure): all sets of the first, then all sets of the second, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator_svc.tensors import TensorSpec

ALIGNMENT = 512
"""Bytes: what torch's own allocator on a GPU promises."""


@dataclass(frozen=True, slots=True)
class Column:
    """One tensor in all sets: ``nbytes`` each, ``stride`` bytes apart, the first ``at`` bytes into the allocation."""

    at: int
    nbytes: int
    stride: int


@dataclass(frozen=True, slots=True)
class DeviceLayout:
    """``sets`` copies of some tensors."""

    sets: int
    columns: tuple[Column, ...]

    @property
    def nbytes(self) -> int:
        """Of all of it; never nothing, because that cannot be allocated."""
        return sum(column.stride * self.sets for column in self.columns) or ALIGNMENT

    def at(self, set_: int, index: int) -> int:
        """Offset of one tensor, in bytes."""
        column = self.columns[index]
        return column.at + set_ * column.stride

    def where(self, offset: int) -> str:
        """Describe an offset, for evidence: ``byte 12 of input 0 of set 3``."""
        for index, column in enumerate(self.columns):
            set_, byte = divmod(offset - column.at, column.stride)
            if 0 <= set_ < self.sets:
                past = byte - column.nbytes
                said = f"byte {byte} of" if past < 0 else f"byte {past} past the end of"
                return f"{said} input {index} of set {set_}"
        return "past the end of all inputs"


def plan(specs: Sequence[TensorSpec], sets: int) -> DeviceLayout:
    """Lay out ``sets`` copies of ``specs``."""
    columns, at = [], 0
    for spec in specs:
        stride = max(1, -(-spec.nbytes // ALIGNMENT)) * ALIGNMENT
        columns.append(Column(at=at, nbytes=spec.nbytes, stride=stride))
        at += sets * stride
    return DeviceLayout(sets=sets, columns=tuple(columns))
