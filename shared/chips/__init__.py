"""Chip sheets: what is known of each chip, as data. A new chip is a new ``<id>.toml``, here or elsewhere (``places``).

Unknown is a value: a peak that the sheet lacks is measured by the worker's calibration or stays unknown.
"""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.chips import external, facts, places
from shared.chips.external import External
from shared.chips.tables import table
from shared.errors import ChipError


@dataclass(frozen=True, slots=True, kw_only=True)
class Isa:
    """One vector instruction set of a chip, best first in the sheet.

    ``cpu_flags`` are the names in ``/proc/cpuinfo`` that must all be present; ``flags`` go to the compiler.
    """

    name: str
    vector_bits: int
    registers: int
    cpu_flags: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What a kernel on a GPU is written for; a block is what runs on one multiprocessor and shares memory there."""

    name: str
    """The architecture as compilers name it, e.g. ``sm_90``."""
    warp: int
    """Threads that run in lockstep: a warp of NVIDIA's, a wavefront of AMD's."""
    threads_max: int
    """Threads of a block."""
    shared_bytes: int
    """Shared memory (LDS) of a block."""
    registers: int
    """32-bit registers that the threads of a multiprocessor share."""
    registers_max: int
    """Of one thread."""
    multiprocessors: int
    """Of a typical board: what persistent grids are sized by. Another board runs them, too."""
    warps_max: int
    """Resident on one multiprocessor (compute unit)."""
    blocks_max: int
    """Likewise."""
    shared_total: int
    """Shared memory of one multiprocessor, of which each block takes ``shared_reserved`` bytes besides its own."""
    shared_reserved: int
    register_granule: int
    """Registers of one thread are given out in steps of so many."""
    partitions: int = 4
    """Of a multiprocessor, each with its share of the registers (SIMDs of AMD's)."""
    tensor_float32: bool = False
    """Matrix units multiply float32 rounded to TensorFloat-32, and exactly by three such products."""
    shared_declared: int | None = None
    """Of ``shared_bytes``, what a kernel can declare; more has to be asked for at launch. ``None``: all of it."""
    copy_engine: bool = False
    """Boxes of tensors are copied to shared memory by an engine of their own (NVIDIA's TMA)."""
    flags: tuple[str, ...] = ()
    """For the compiler; Python-hosted languages take none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What a modelled score assumes of a GPU that is not there: a typical board, by its data sheet. Nothing measured
    uses it.
    """

    name: str
    bandwidth_gb_s: float
    """Of its memory."""
    cache_kib: int
    """Of the last cache that all multiprocessors share: what fits is asked of memory once."""
    cache_times: float
    """That cache's bandwidth in times of the memory's."""
    first_kib: int
    """Of each multiprocessor's own cache, with the shared memory that is cut from it."""
    first_times: float
    """The bandwidth of all of those in times of the memory's."""
    latency_ns: float
    """Of a read from memory under load."""
    launch_ns: float
    """From one kernel to the next in a stream."""
    tops: float
    """Plain operations (float32, one a lane and cycle) a second in units of 1e12: half of the fused peak."""
    special_share: float
    """Rate of the special functions (exp, log, sin) in times of that."""
    tflops: dict[str, float]
    """Of matrix units by the type of operands, a multiply-add being two operations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """A model of what instructions cost, in cycles: constants over exact counts, measured on no processor.

    What works on vectors costs by the register of its group (LMUL), a fraction of one as a whole one.
    """

    scalar: float
    """Integer and float instructions, branches, ``vsetvl``: two are issued a cycle where this is 0.5."""
    multiply: float
    divide: float
    vector: float
    """Arithmetic, multiply-add included, a register."""
    vector_divide: float
    """Division and square root, a register."""
    reduction: float
    permutation: float
    bytes: float
    """Moved a cycle between memory and registers, scalar or contiguous."""
    element: float
    """Of a strided, indexed or segment access, each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorUnit:
    """A RISC-V processor with the vector extension (V 1.0), emulated: counted, never timed."""

    name: str
    vlen: int
    """Bits of one vector register."""
    elen: int
    """Bits of the widest element."""
    registers: int
    flags: tuple[str, ...]
    """For the compiler."""
    cycles: Cycles


EXTERNAL = "external"
"""The toolchain of a chip whose tools are its vendor's."""

Machine = Isa | Gpu | VectorUnit
"""What kernels of a chip are written for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipSheet:
    """A chip's facts. ``None`` means unknown."""

    id: str
    title: str
    vendor: str
    architecture: str
    languages: tuple[str, ...]
    toolchain: str
    memory_bandwidth_gb_s: float | None = None
    peak_tflops: dict[str, float] = field(default_factory=dict)
    cache_kib: dict[str, int] = field(default_factory=dict)
    isas: tuple[Isa, ...] = ()
    gpu: Gpu | None = None
    board: Board | None = None
    vector: VectorUnit | None = None
    external: External | None = None
    """The vendor's own tools; None where no adapter is given."""
    needs: dict[str, str] = field(default_factory=dict)
    """Tool on PATH -> how to install it."""
    language_needs: dict[str, dict[str, str]] = field(default_factory=dict)
    """The same for kernels of one language; the others do without."""
    compile_only: tuple[str, ...] = ()
    """Languages whose kernels are evaluated only where the chip is missing: compiled for it, emulated, modelled."""
    without: str = ""
    """What an evaluator can still tell of a kernel where a tool is missing; empty for nothing."""
    notes: str = ""


def known() -> tuple[str, ...]:
    """Ids of all chip sheets, sorted.

    Raises:
        ChipError: as ``places.sheets``.
    """
    return tuple(places.sheets())


def load(chip_id: str) -> ChipSheet:
    """The sheet of ``chip_id``.

    Raises:
        ChipError: there is no such sheet, or it is none: what is wrong, in which table of which file.
    """
    found = places.sheets()
    if chip_id not in found:
        raise ChipError(f"unknown chip `{chip_id}`", hint=f"known chips: {', '.join(found)}")
    return read(found[chip_id])


def read(path: Path) -> ChipSheet:
    """The sheet in the file ``path``, whose name is the chip's id.

    Raises:
        ChipError: what is wrong, in which table.
    """
    chip_id = places.id_of(path)
    where = path.name if places.packaged(path) else str(path)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ChipError(f"is no TOML: {error}", where=where) from error
    except OSError as error:
        raise ChipError(f"cannot be read: {error.strerror}", where=where) from error
    return parse(chip_id, raw, path.parent, where)


def parse(chip_id: str, raw: dict[str, Any], folder: Path, where: str) -> ChipSheet:
    """The sheet of ``chip_id`` from its tables; ``folder`` is where it lies (pure but for files that it names).

    Raises:
        ChipError: what is wrong, in which table.
    """
    rest = dict(raw)
    architecture = str(rest.get("architecture", ""))
    named = rest.get("languages")
    languages = tuple(str(one) for one in named) if isinstance(named, list) else ()
    isas = rest.pop("isa", [])
    if not isinstance(isas, list):
        raise ChipError("is no array of tables", where=f"{where}: isa", hint="write [[isa]]")
    given: dict[str, Any] = {
        "id": chip_id,
        "isas": tuple(table(Isa, one, f"{where}: isa[{index}]") for index, one in enumerate(isas)),
        "gpu": _part(Gpu, rest.pop("gpu", None), f"{where}: gpu", name=architecture),
        "board": _part(Board, rest.pop("board", None), f"{where}: board"),
        "vector": _vector(rest.pop("vector", None), architecture, f"{where}: vector"),
        "external": None,
    }
    tools = rest.pop("external", None)
    if tools is not None:
        given["external"] = external.read(tools, folder, languages, f"{where}: external")
    sheet = table(ChipSheet, rest, where, **given)
    if tools is not None and sheet.toolchain != EXTERNAL:
        raise ChipError(
            f"has [external], and its toolchain is `{sheet.toolchain}`", where=where, hint=f'toolchain = "{EXTERNAL}"'
        )
    facts.check(sheet, where)
    return sheet


def _part(owner: type[Any], raw: Any, where: str, **given: Any) -> Any:
    return None if raw is None else table(owner, raw, where, **given)


def _vector(raw: Any, name: str, where: str) -> VectorUnit | None:
    if raw is None:
        return None
    if not isinstance(raw, dict) or "cycles" not in raw:
        raise ChipError("`cycles` is missing", where=where, hint="add [vector.cycles]")
    rest = dict(raw)
    cycles = table(Cycles, rest.pop("cycles"), f"{where}.cycles")
    return table(VectorUnit, rest, where, name=name, cycles=cycles)


def missing_tools(sheet: ChipSheet) -> dict[str, str]:
    """Tools that ``sheet`` needs and PATH lacks, each with how to install it."""
    return _missing(sheet.needs)


def missing_for(sheet: ChipSheet, language: str) -> dict[str, str]:
    """Tools that ``language`` needs besides and PATH lacks, each with how to install it."""
    return _missing(sheet.language_needs.get(language, {}))


def _missing(needs: dict[str, str]) -> dict[str, str]:
    return {tool: how for tool, how in needs.items() if shutil.which(tool) is None}


def best_isa(sheet: ChipSheet, cpu_flags: frozenset[str]) -> Isa:
    """The first instruction set of ``sheet`` that a processor with ``cpu_flags`` has.

    Raises:
        ChipError: none fits, or the sheet names none.
    """
    if not sheet.isas:
        raise ChipError(
            f"chip `{sheet.id}` has no table of a machine that schedules are written for",
            hint="add [vector], [gpu] or [[isa]], or have models write all kernels: docs/chips.md",
        )
    for isa in sheet.isas:
        if cpu_flags.issuperset(isa.cpu_flags):
            return isa
    raise ChipError(f"this processor has no instruction set of chip `{sheet.id}`")


def machine_of(sheet: ChipSheet, cpu_flags: frozenset[str]) -> Machine:
    """What kernels for ``sheet`` are written for: its GPU or vector unit, or a processor's best set.

    Raises:
        ChipError: it is no GPU, and no instruction set fits.
    """
    return sheet.gpu or sheet.vector or best_isa(sheet, cpu_flags)
