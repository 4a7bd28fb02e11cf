"""What the counting plugin saw of a call, and what it costs by the chip sheet's model (pure)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from shared.chips import Cycles
from shared.events import Basis, Count, Estimate

CLASSES = (
    "int", "mul", "div", "load", "store", "branch", "float", "fdiv", "vset", "vload", "vloads", "vstore", "vstores",
    "valu", "vdiv", "vred", "vperm", "other",
)  # fmt: skip
"""As ``counter.c`` numbers them; ``vloads`` and ``vstores`` are strided, indexed or of segments."""
INPUTS_MAX = 256
HEAD = struct.Struct("<3Q")
RANGE = struct.Struct("<2Q")
SEEN = struct.Struct(f"<{6 + 2 * len(CLASSES) + 3}Q")
SEEN_AT = HEAD.size + INPUTS_MAX * RANGE.size
PAGE_BYTES = 8192
UNIT = "model cycles"
VECTOR = ("vload", "vloads", "vstore", "vstores", "valu", "vdiv", "vred", "vperm")
EIGHTHS = 8
"""Of a vector register: the plugin's unit of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """``why``: the rule that was broken (``ending.RULES``), with ``detail``. ``code`` is ke_launch's, once ``exited``.

    ``work``: eighths of a vector register, by class. ``elements``: accesses of strided and indexed instructions.
    """

    why: int
    detail: int
    begun: int
    ended: int
    exited: bool
    code: int
    count: dict[str, int]
    work: dict[str, int]
    loaded: int
    stored: int
    elements: int


def head(*, calls: int, reserved: int, inputs: list[tuple[int, int]]) -> bytes:
    """What the plugin is told: how many calls, where the guest's addresses end, and where inputs lie."""
    return HEAD.pack(calls, reserved, len(inputs)) + b"".join(RANGE.pack(*one) for one in inputs)


def parse(page: bytes) -> Seen:
    why, detail, begun, ended, exited, code, *rest = SEEN.unpack_from(page, SEEN_AT)
    size = len(CLASSES)
    loaded, stored, elements = rest[2 * size :]
    return Seen(
        why=why,
        detail=detail,
        begun=begun,
        ended=ended,
        exited=exited != 0,
        code=struct.unpack("<i", struct.pack("<I", code & 0xFFFFFFFF))[0],
        count=dict(zip(CLASSES, rest[:size], strict=True)),
        work=dict(zip(CLASSES, rest[size : 2 * size], strict=True)),
        loaded=loaded,
        stored=stored,
        elements=elements,
    )


def named(seen: Seen) -> tuple[Count, ...]:
    """The counts that a result tells."""
    count, vector = seen.count, sum(seen.count[name] for name in VECTOR)
    total = sum(count.values())
    told = {
        "instructions": total,
        "scalar_instructions": total - vector - count["vset"] - count["branch"],
        "branches": count["branch"],
        "vector_instructions": vector,
        "vector_settings": count["vset"],
        "vector_loads": count["vload"] + count["vloads"],
        "vector_stores": count["vstore"] + count["vstores"],
        "vector_work": sum(seen.work.values()) // EIGHTHS,
        "loads": count["load"],
        "stores": count["store"],
        "bytes_loaded": seen.loaded,
        "bytes_stored": seen.stored,
    }
    return tuple(Count(name=name, value=value) for name, value in told.items())


def terms(seen: Seen, cycles: Cycles) -> dict[str, float]:
    """Cycles of the model, by what takes them. Loads and stores are issued, and their bytes are moved."""
    count, registers = seen.count, {name: eighths / EIGHTHS for name, eighths in seen.work.items()}
    plain = sum(count[name] for name in ("int", "branch", "float", "vset", "load", "store", "other"))
    return {
        "scalar": plain * cycles.scalar
        + count["mul"] * cycles.multiply
        + (count["div"] + count["fdiv"]) * cycles.divide,
        "vector": registers["valu"] * cycles.vector
        + registers["vdiv"] * cycles.vector_divide
        + registers["vred"] * cycles.reduction
        + registers["vperm"] * cycles.permutation,
        "memory": (seen.loaded + seen.stored) / cycles.bytes + seen.elements * cycles.element,
    }


def estimate(seen: Seen, cycles: Cycles) -> Estimate:
    """A sum over exact counts, with constants of the sheet."""
    cost = max(1, math.ceil(sum(terms(seen, cycles).values())))
    return Estimate(basis=Basis.COUNTED, cost=cost, unit=UNIT, counts=named(seen))
