"""The bytes that pass between controller and runner program (pure; layouts of ``native.cpp`` and ``report.hpp``)."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.sandbox import text
from evaluator_svc.tensors import TensorSpec

MAGIC = 0x4B45564F
COMMAND = struct.Struct("<4I")
REPLY = struct.Struct("<IIiIQ")
REPORT = struct.Struct("<IiiI5Q256s")
MAX_DIMS = 8


class Kind(IntEnum):
    """How a runner said it ended."""

    NONE = 0
    SIGNAL = 1
    EXCEPTION = 2
    LOAD = 3
    CHANNEL = 4
    BAD_ALLOC = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer to command ``sequence``. ``code`` is ke_launch's return value."""

    sequence: int
    code: int
    kind: int
    spent_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The runner's own account of its end: evidence, never proof."""

    kind: int
    signal: int
    code: int
    syscall: int
    address: int
    error: int
    stack: int
    base: int
    refused: int
    text: str


def command(*, calls: int, first_set: int, sequence: int) -> bytes:
    return COMMAND.pack(MAGIC, calls, first_set, sequence)


def reply(data: bytes) -> Reply | None:
    """None when the bytes are no reply."""
    if len(data) != REPLY.size:
        return None
    magic, sequence, code, kind, spent = REPLY.unpack(data)
    return Reply(sequence=sequence, code=code, kind=kind, spent_ns=spent) if magic == MAGIC else None


def report(page: bytes | memoryview) -> Report:
    kind, signal, code, syscall, address, error, stack, base, refused, raw = REPORT.unpack_from(page)
    words = raw.split(b"\0")[0].decode("utf-8", "replace")
    printable = "".join(c if c.isprintable() else "?" for c in words)
    return Report(kind=kind, signal=signal, code=code, syscall=syscall, address=address, error=error, stack=stack,
                  base=base, refused=refused, text=printable)  # fmt: skip


def configuration(
    *,
    confinement: bytes,
    loaded_filter: bytes,
    library: str,
    fds: Sequence[int],
    cpus: Sequence[int],
    buffers: Buffers,
    stained: bool,
) -> bytes:
    """Everything ``prepare`` of the runner program reads. ``fds``: report, inputs, outputs, command, reply."""
    packed = confinement + text(loaded_filter) + text(library.encode()) + struct.pack("<5i", *fds)
    packed += counts(buffers, stained=stained) + struct.pack(f"<I{len(cpus)}I", len(cpus), *cpus)
    return packed + places(buffers)


def counts(buffers: Buffers, *, stained: bool) -> bytes:
    """How many sets, inputs and outputs there are, and whether memory is stained."""
    return struct.pack("<4I", buffers.sets, len(buffers.inputs), len(buffers.outputs), stained)


def places(buffers: Buffers) -> bytes:
    """What ``map_buffers`` of ``buffers.hpp`` reads."""
    layout = buffers.layout
    strides = (layout.input_stride, layout.output_stride)
    numbers = (layout.span, layout.spacing is Spacing.DENSE, layout.inputs_bytes, layout.outputs_bytes)
    packed = struct.pack("<8Q", *numbers, *(one for stride in strides for one in (stride.in_file, stride.at)))
    packed += b"".join(_tensor(spec) for spec in (*buffers.inputs, *buffers.outputs))
    return packed + b"".join(struct.pack("<4Q", r.in_file, r.at, r.size, r.data) for r in layout.first)


def _tensor(spec: TensorSpec) -> bytes:
    shape = spec.shape
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    padding = [0] * (MAX_DIMS - len(shape))
    return struct.pack("<16q2i", *shape, *padding, *strides, *padding, len(shape), spec.dtype.code)
