"""What passes between the controller and a hosted candidate (pure): commands, replies, and the page of results.

Of the candidate's side nothing here is believed: sizes are fixed, numbers are checked against what was asked for.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

MAGIC = 0x4B45564F
COMMAND = struct.Struct("<5I")
"""magic, verb, calls, first set, sequence."""
REPLY = struct.Struct("<IIiIQ")
"""magic, sequence, code, kind, the candidate's own clock in ns: as in ``runner/protocol.py``."""
REPORT_BYTES = 4096
"""``struct Report`` of ``report.hpp``, alone on the first page of the shared memory; results follow."""
CLOCK = struct.Struct("<q")
"""The device's own time for the last calls, in ns; -1: it has no clock."""
TEXT_BYTES = 4096 - CLOCK.size
DIMENSIONS_MAX = 8
_ENTRY = struct.Struct("<iiiiQ8q8q")
_SHARED = struct.Struct("<QQ64s")
"""Whether there is a handle, how far into its allocation a result lies, and the handle: on a device."""
_ADDRESS, _ADDRESS_AT = struct.Struct("<Q"), struct.calcsize("<iiii")


class Verb(IntEnum):
    """What the controller asks for."""

    LOAD = 1
    PRIME = 2
    """Calls on throw-away values: whatever they raise or return counts for nothing."""
    SEAL = 3
    RUN = 4
    SETTLE = 5
    """Answer, and do nothing else; results stay as they are."""
    AUDIT = 6
    FILL = 7
    """Bring the inputs of the next calls to the device; asked for only where that is another memory."""
    EXPORT = 8
    """Copy results to the shared outputs; asked for only where the controller cannot read them itself."""


class Kind(IntEnum):
    """How a command ended, after ``report.hpp``; what is beyond its numbers is of hosted candidates only."""

    NONE = 0
    EXCEPTION = 2
    LOAD = 3
    BAD_ALLOC = 5
    REFUSED = 6
    """An exception because the sandbox said no."""


class Claim(IntEnum):
    """What the candidate's side says of one result."""

    TENSOR = 0
    MISSING = 1
    """No tensor, or too few or too many results."""
    SUBCLASS = 2
    PARAMETER = 3
    LAYOUT = 4
    """Sparse, nested or without data."""
    DEVICE = 5
    DTYPE = 6
    """An element type that kernels cannot give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One output of the last call on one set. ``strides`` in elements; ``address`` in the candidate's memory."""

    claim: int
    dtype: int
    ndim: int
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


_TEXT = REPORT_BYTES + CLOCK.size
_RESULTS = _TEXT + TEXT_BYTES


def page_bytes(results: int, *, kept: bool = False) -> int:
    """Size of the memory shared with the candidate: report, text, results, their handles if ``kept``; whole pages."""
    size = _RESULTS + results * (_ENTRY.size + (_SHARED.size if kept else 0))
    return -(-size // REPORT_BYTES) * REPORT_BYTES


def pack(page: memoryview, place: int, result: Result) -> None:
    """Write the ``place``-th result: sets x outputs."""
    slot(page, place)[:] = packed(result)


def packed(result: Result) -> bytes:
    """A result as it is written."""
    pad = (0,) * DIMENSIONS_MAX
    shape, strides = (result.shape + pad)[:DIMENSIONS_MAX], (result.strides + pad)[:DIMENSIONS_MAX]
    return _ENTRY.pack(1, result.claim, result.dtype, result.ndim, result.address, *shape, *strides)


def placed(entry: bytes, address: int) -> bytes:
    """A result that is as ``entry`` but for its address."""
    return entry[:_ADDRESS_AT] + _ADDRESS.pack(address) + entry[_ADDRESS_AT + _ADDRESS.size :]


def slot(page: memoryview, place: int) -> memoryview:
    """Where the ``place``-th result is written, as ``packed`` made it."""
    at = _RESULTS + place * _ENTRY.size
    return page[at : at + _ENTRY.size]


def forget(page: memoryview, places: int) -> None:
    """No result is there any more."""
    page[_RESULTS : _RESULTS + places * _ENTRY.size] = bytes(places * _ENTRY.size)
    CLOCK.pack_into(page, REPORT_BYTES, -1)


def handle_slot(page: memoryview, places: int, place: int) -> memoryview:
    """Where it is told which allocation the ``place``-th of ``places`` results lies in."""
    at = _RESULTS + places * _ENTRY.size + place * _SHARED.size
    return page[at : at + _SHARED.size]


def share(slot: memoryview, handle: bytes, offset: int) -> None:
    """Tell the allocation that a result lies in."""
    _SHARED.pack_into(slot, 0, 1, offset, handle)


def unshare(page: memoryview, places: int) -> None:
    """No handle is told any more."""
    at = _RESULTS + places * _ENTRY.size
    page[at : at + places * _SHARED.size] = bytes(places * _SHARED.size)


def shared(page: bytes, places: int, place: int) -> tuple[bytes, int] | None:
    """Handle and offset that were told of a result; None where none was."""
    there, offset, handle = _SHARED.unpack_from(page, _RESULTS + places * _ENTRY.size + place * _SHARED.size)
    return (handle, offset) if there else None


def write_clock(page: memoryview, spent_ns: int) -> None:
    CLOCK.pack_into(page, REPORT_BYTES, spent_ns)


def read_clock(page: bytes) -> int | None:
    """The device's own time, ns, or None."""
    spent: int = CLOCK.unpack_from(page, REPORT_BYTES)[0]
    return spent if spent >= 0 else None


def unpack(page: bytes, place: int) -> Result | None:
    """None where no result was written."""
    at = _RESULTS + place * _ENTRY.size
    there, claim, dtype, ndim, address, *extents = _ENTRY.unpack_from(page, at)
    if not there:
        return None
    count = min(max(ndim, 0), DIMENSIONS_MAX)
    return Result(
        claim=claim,
        dtype=dtype,
        ndim=ndim,
        address=address,
        shape=tuple(extents[:count]),
        strides=tuple(extents[DIMENSIONS_MAX : DIMENSIONS_MAX + count]),
    )


def write_text(page: memoryview, text: str) -> None:
    """A remark of at most ``TEXT_BYTES`` bytes, e.g. what the audit saw."""
    said = text.encode("utf-8", "replace")[:TEXT_BYTES]
    page[_TEXT : _TEXT + TEXT_BYTES] = said + bytes(TEXT_BYTES - len(said))


def read_text(page: bytes) -> str:
    """Printable characters only."""
    said = page[_TEXT : _TEXT + TEXT_BYTES].split(b"\0")[0].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in said)
