"""Where a runner's buffers lie (pure).

``Spacing.GUARDED``, for checking: each buffer has whole pages of its own between stretches without access, long enough
that a wild index into one buffer does not land in another. Its data ends at the page's end, as far as the 64-byte
alignment of the ABI allows, so that one element too far is a fault; the at most 63 bytes left over, and the bytes
before the data in its first page, hold canaries.

``Spacing.DENSE``, for timing: many sets lie side by side, as a program's tensors do, a line of canaries between any
two buffers. So many guarded buffers would be timed by their page tables, and reach the kernel's limit of mappings.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from evaluator_svc.tensors import TensorSpec

PAGE = 4096
GUARD = 1 << 28
"""Bytes without access on either side of a buffer: address space only, no memory."""
ALIGNMENT = 64
"""Bytes; promised by ``ke_abi.h``. A line of the caches."""


class Spacing(Enum):
    """What lies between buffers."""

    GUARDED = "guards"
    DENSE = "canaries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One buffer. Offsets in bytes: ``in_file`` of its pages, ``at`` in the runner's span, ``data`` in its pages."""

    set_: int
    index: int
    output: bool
    in_file: int
    at: int
    size: int
    data: int
    nbytes: int

    @property
    def name(self) -> str:
        return f"{'output' if self.output else 'input'} {self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stride:
    """From one set to the next, in bytes: in the file, and in the runner's span."""

    in_file: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The buffers of the first set, inputs before outputs; those of the others lie at even distances. ``inputs_bytes``
    and ``outputs_bytes`` are the sizes of the two files, ``span`` that of all addresses, in bytes.
    """

    spacing: Spacing
    sets: int
    first: tuple[Region, ...]
    input_stride: Stride
    output_stride: Stride
    inputs_bytes: int
    outputs_bytes: int
    span: int

    @property
    def regions(self) -> tuple[Region, ...]:
        """All of them, set by set."""
        return tuple(self._in_set(region, set_) for set_, region in itertools.product(range(self.sets), self.first))

    def region(self, set_: int, index: int, *, output: bool) -> Region:
        return self._in_set(self.in_first(index, output=output), set_)

    def in_first(self, index: int, *, output: bool) -> Region:
        """Of the first set."""
        return next(r for r in self.first if (r.index, r.output) == (index, output))

    def stride(self, *, output: bool) -> Stride:
        return self.output_stride if output else self.input_stride

    def where(self, offset: int) -> str:
        """Describe an offset into the span, for evidence: ``byte 0 past the end of output 0``."""
        reach = GUARD if self.spacing is Spacing.GUARDED else ALIGNMENT
        for r in self.regions:
            begin, end = r.at + r.data, r.at + r.data + r.nbytes
            if begin <= offset < end:
                return f"byte {offset - begin} of {r.name}"
            if end <= offset < r.at + r.size + reach:
                return f"byte {offset - end} past the end of {r.name}"
            if r.at - reach <= offset < begin:
                return f"{begin - offset} bytes before the start of {r.name}"
        return "between buffers"

    def inside_input(self, offset: int) -> Region | None:
        """The input whose pages hold ``offset``."""
        return next((r for r in self.regions if not r.output and r.at <= offset < r.at + r.size), None)

    def _in_set(self, region: Region, set_: int) -> Region:
        stride = self.stride(output=region.output)
        return replace(
            region, set_=set_, in_file=region.in_file + set_ * stride.in_file, at=region.at + set_ * stride.at
        )


def plan(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int, spacing: Spacing = Spacing.GUARDED
) -> Layout:
    """Lay out ``sets`` copies of the tensors."""
    return _guarded(inputs, outputs, sets) if spacing is Spacing.GUARDED else _dense(inputs, outputs, sets)


def set_bytes(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> int:
    """Memory of one set, laid out densely."""
    return sum(ALIGNMENT + _padded(spec) for spec in (*inputs, *outputs))


def _guarded(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int) -> Layout:
    """Two guards lie between neighbours: one for each."""
    regions: list[Region] = []
    files = {False: 0, True: 0}
    at = GUARD
    for output, specs in ((False, inputs), (True, outputs)):
        for index, spec in enumerate(specs):
            padded = _padded(spec)
            size = -(-padded // PAGE) * PAGE
            regions.append(
                Region(set_=0, index=index, output=output, in_file=files[output], at=at, size=size,
                       data=size - padded, nbytes=spec.nbytes)
            )  # fmt: skip
            files[output] += size
            at += size + 2 * GUARD
    apart = at - GUARD
    return Layout(
        spacing=Spacing.GUARDED,
        sets=sets,
        first=tuple(regions),
        input_stride=Stride(in_file=files[False], at=apart),
        output_stride=Stride(in_file=files[True], at=apart),
        inputs_bytes=sets * files[False],
        outputs_bytes=sets * files[True],
        span=GUARD + sets * apart,
    )


def _dense(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int) -> Layout:
    """All inputs, a guard, all outputs: each file is mapped as a whole. A last line of canaries ends it."""
    regions: list[Region] = []
    strides, sizes = {}, {}
    at = GUARD
    for output, specs in ((False, inputs), (True, outputs)):
        in_file = 0
        for index, spec in enumerate(specs):
            size = ALIGNMENT + _padded(spec)
            regions.append(
                Region(set_=0, index=index, output=output, in_file=in_file, at=at + in_file, size=size,
                       data=ALIGNMENT, nbytes=spec.nbytes)
            )  # fmt: skip
            in_file += size
        strides[output] = Stride(in_file=in_file, at=in_file)
        sizes[output] = max(1, -(-(sets * in_file + ALIGNMENT) // PAGE)) * PAGE
        at += sizes[output] + GUARD
    return Layout(
        spacing=Spacing.DENSE,
        sets=sets,
        first=tuple(regions),
        input_stride=strides[False],
        output_stride=strides[True],
        inputs_bytes=sizes[False],
        outputs_bytes=sizes[True],
        span=at,
    )


def _padded(spec: TensorSpec) -> int:
    return max(1, -(-spec.nbytes // ALIGNMENT)) * ALIGNMENT
