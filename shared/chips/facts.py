"""Facts of a chip sheet that cannot be: told when it is read, not by a division by zero in a search (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shared.errors import ChipError

if TYPE_CHECKING:
    from shared.chips import Board, ChipSheet, Gpu, Isa, VectorUnit

TABLES = {
    "nvidia": ("gpu", "[gpu]"),
    "amd": ("gpu", "[gpu]"),
    "riscv": ("vector", "[vector]"),
    "cpu": ("isas", "[[isa]]"),
}
"""What a toolchain cannot do without: the sheet's field, and how the table is written."""
ARCHITECTURES = {
    "nvidia": (re.compile(r"sm_[1-9][0-9]{1,2}"), "sm_90"),
    "amd": (re.compile(r"gfx[0-9a-f]{3,4}"), "gfx942"),
}
"""How compilers name them, with an example."""
MAY_BE_ZERO = ("shared_reserved", "launch_ns")
OPERANDS = ("fp8", "fp16", "bf16", "fp32", "fp64", "int8")
VECTOR_BITS = (128, 256, 512)
ELEMENT_BITS = (32, 64)
VLEN_MIN, VLEN_MAX = 128, 1 << 16
"""Of the V extension for application processors."""


def check(sheet: ChipSheet, where: str) -> None:
    """Hold ``sheet`` to what can be; ``where`` names its file.

    Raises:
        ChipError: a number out of its range, tables that contradict each other, or one that the toolchain needs and
            the sheet lacks.
    """
    _languages(sheet, where)
    _numbers(sheet, where)
    _parts(sheet, where)
    needed = TABLES.get(sheet.toolchain)
    if needed is not None and not getattr(sheet, needed[0]):
        raise ChipError(f"toolchain `{sheet.toolchain}` needs the table {needed[1]}", where=where, hint="docs/chips.md")
    pattern = ARCHITECTURES.get(sheet.toolchain)
    if pattern is not None and not pattern[0].fullmatch(sheet.architecture):
        raise ChipError(
            f"`architecture` is `{sheet.architecture}`", where=where, hint=f"as compilers name it, e.g. {pattern[1]}"
        )


def _languages(sheet: ChipSheet, where: str) -> None:
    if not sheet.languages:
        raise ChipError("`languages` is empty", where=where, hint="name what kernels are written in")
    for place, language in enumerate(sheet.languages):
        if not language.strip():
            raise ChipError(f"`languages`[{place}] is empty", where=where, hint="name a language, or leave it out")
        if language in sheet.languages[:place]:
            raise ChipError(f"`languages` names `{language}` twice", where=where, hint="once is enough")
    for key, named in (("compile_only", sheet.compile_only), ("language_needs", sheet.language_needs)):
        for language in named:
            if language not in sheet.languages:
                raise ChipError(
                    f"`{key}` names `{language}`, which is none of the chip's languages",
                    where=where,
                    hint=f"one of {', '.join(sheet.languages)}",
                )


def _numbers(sheet: ChipSheet, where: str) -> None:
    found: dict[str, Any] = {
        "": {"memory_bandwidth_gb_s": sheet.memory_bandwidth_gb_s},
        "peak_tflops": sheet.peak_tflops,
        "cache_kib": sheet.cache_kib,
        "gpu": _fields(sheet.gpu),
        "board": _fields(sheet.board),
        "board.tflops": sheet.board.tflops if sheet.board else {},
        "vector": _fields(sheet.vector),
        **{f"isa[{place}]": _fields(isa) for place, isa in enumerate(sheet.isas)},
    }
    for table, numbers in found.items():
        for name, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                continue
            if number < 0 or (number == 0 and name not in MAY_BE_ZERO):
                least = "0 or above" if name in MAY_BE_ZERO else "a number above 0"
                raise ChipError(f"`{name}` is {number}", where=_at(where, table), hint=f"{least}, or leave it unknown")
    if sheet.vector is not None:
        for name, number in _fields(sheet.vector.cycles).items():
            if number < 0 or (name == "bytes" and number == 0):
                raise ChipError(
                    f"`{name}` is {number}", where=_at(where, "vector.cycles"), hint="a cost, or a rate above 0"
                )


def _fields(part: Any) -> Mapping[str, Any]:
    return {} if part is None else {name: getattr(part, name) for name in part.__slots__}


def _parts(sheet: ChipSheet, where: str) -> None:
    told = [("gpu", rule) for rule in (_gpu(sheet.gpu) if sheet.gpu else ())]
    told += [("board", rule) for rule in (_board(sheet.board) if sheet.board else ())]
    told += [("vector", rule) for rule in (_vector(sheet.vector) if sheet.vector else ())]
    told += [(f"isa[{place}]", rule) for place, isa in enumerate(sheet.isas) for rule in _isa(isa)]
    for table, (kept, said, expected) in told:
        if not kept:
            raise ChipError(said, where=_at(where, table), hint=expected)


def _gpu(gpu: Gpu) -> Iterator[tuple[bool, str, str]]:
    """Each rule: whether it is kept, what is wrong otherwise, and what was expected."""
    yield _power(gpu.warp), f"`warp` is {gpu.warp}", "a power of two: 32 on NVIDIA's, 64 on AMD's CDNA"
    yield gpu.threads_max % gpu.warp == 0, f"`threads_max` is {gpu.threads_max}", f"a multiple of the warp, {gpu.warp}"
    for small, large in (
        ("shared_bytes", "shared_total"),
        ("shared_declared", "shared_bytes"),
        ("registers_max", "registers"),
    ):
        less, more = getattr(gpu, small), getattr(gpu, large)
        yield less is None or less <= more, f"`{small}` is {less}, more than `{large}`, {more}", "mend one of them"


def _board(board: Board) -> Iterator[tuple[bool, str, str]]:
    yield bool(board.tflops), "`tflops` is empty", f"rates of matrix units for some of {', '.join(OPERANDS)}"
    unknown = _first(board.tflops, OPERANDS)
    yield unknown is None, f"`tflops` names `{unknown}`", f"operands are {', '.join(OPERANDS)}"


def _vector(unit: VectorUnit) -> Iterator[tuple[bool, str, str]]:
    vlen = _power(unit.vlen) and VLEN_MIN <= unit.vlen <= VLEN_MAX
    yield vlen, f"`vlen` is {unit.vlen}", f"a power of two from {VLEN_MIN} to {VLEN_MAX}"
    yield unit.elen in ELEMENT_BITS, f"`elen` is {unit.elen}", " or ".join(map(str, ELEMENT_BITS))


def _isa(isa: Isa) -> Iterator[tuple[bool, str, str]]:
    known = " or ".join(map(str, VECTOR_BITS))
    yield isa.vector_bits in VECTOR_BITS, f"`vector_bits` is {isa.vector_bits}", known


def _first(names: Collection[str], known: Collection[str]) -> str | None:
    return next((name for name in names if name not in known), None)


def _power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _at(where: str, table: str) -> str:
    return f"{where}: {table}" if table else where
