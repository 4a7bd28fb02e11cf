"""Where a runner's buffers lie (pure).

Each buffer has whole pages of its own between stretches without access, long enough that a wild index into one buffer
does not land in another. Its data ends at the page's end, as far as the
64-byte alignment of the ABI allows, so that one element too far is a fault; the at most 63 bytes left over, and the
bytes before the data in its first page, hold canaries.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator_svc.tensors import TensorSpec

PAGE = 4096
GUARD = 1 << 28
"""Bytes without access on either side of a buffer: address space only, no memory."""
ALIGNMENT = 64
"""Bytes; promised by ``ke_abi.h``."""


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
class Layout:
    """All regions, set by set, inputs before outputs; sizes of the two files and of the address span, in bytes."""

    regions: tuple[Region, ...]
    inputs_bytes: int
    outputs_bytes: int
    span: int

    def region(self, set_: int, index: int, *, output: bool) -> Region:
        return next(r for r in self.regions if (r.set_, r.index, r.output) == (set_, index, output))

    def where(self, offset: int) -> str:
        """Describe an offset into the span, for evidence: ``byte 0 past the end of output 0``."""
        for r in self.regions:
            begin, end = r.at + r.data, r.at + r.data + r.nbytes
            if begin <= offset < end:
                return f"byte {offset - begin} of {r.name}"
            if end <= offset < r.at + r.size + GUARD:
                return f"byte {offset - end} past the end of {r.name}"
            if r.at - GUARD <= offset < begin:
                return f"{begin - offset} bytes before the start of {r.name}"
        return "between buffers"

    def inside_input(self, offset: int) -> Region | None:
        """The input whose pages hold ``offset``."""
        return next((r for r in self.regions if not r.output and r.at <= offset < r.at + r.size), None)


def plan(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int) -> Layout:
    """Lay out ``sets`` copies of the tensors. Two guards lie between neighbours: one for each."""
    regions: list[Region] = []
    files = {False: 0, True: 0}
    at = GUARD
    for set_, (output, specs) in itertools.product(range(sets), ((False, inputs), (True, outputs))):
        for index, spec in enumerate(specs):
            padded = max(1, -(-spec.nbytes // ALIGNMENT)) * ALIGNMENT
            size = -(-padded // PAGE) * PAGE
            regions.append(
                Region(set_=set_, index=index, output=output, in_file=files[output], at=at, size=size,
                       data=size - padded, nbytes=spec.nbytes)
            )  # fmt: skip
            files[output] += size
            at += size + 2 * GUARD
    return Layout(regions=tuple(regions), inputs_bytes=files[False], outputs_bytes=files[True], span=at)
