"""Chip sheets: what is known of each chip, as data. A new chip is a new ``<id>.toml`` here.

Unknown is a value: a peak that the sheet lacks is measured by the worker's calibration or stays unknown.
"""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

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
    needs: dict[str, str] = field(default_factory=dict)
    """Tool on PATH -> how to install it."""
    without: str = ""
    """What an evaluator can still tell of a kernel where a tool is missing; empty for nothing."""
    notes: str = ""


def known() -> tuple[str, ...]:
    """Ids of all chip sheets, sorted."""
    return tuple(sorted(f.name.removesuffix(".toml") for f in files(__package__).iterdir() if f.name.endswith(".toml")))


def load(chip_id: str) -> ChipSheet:
    """The sheet of ``chip_id``.

    Raises:
        ChipError: there is no such sheet.
    """
    if chip_id not in known():
        raise ChipError(f"unknown chip `{chip_id}`", hint=f"known chips: {', '.join(known())}")
    raw = tomllib.loads(files(__package__).joinpath(f"{chip_id}.toml").read_text(encoding="utf-8"))
    isas = tuple(
        Isa(
            name=isa["name"],
            vector_bits=isa["vector_bits"],
            registers=isa["registers"],
            cpu_flags=tuple(isa["cpu_flags"]),
            flags=tuple(isa["flags"]),
        )
        for isa in raw.pop("isa", ())
    )
    raw["languages"] = tuple(raw["languages"])
    facts = raw.pop("gpu", None)
    gpu = Gpu(name=raw["architecture"], **facts) if facts else None
    assumed = raw.pop("board", None)
    board = Board(**assumed) if assumed else None
    return ChipSheet(id=chip_id, isas=isas, gpu=gpu, board=board, vector=_vector(raw), **raw)


def _vector(raw: dict[str, Any]) -> VectorUnit | None:
    facts = raw.pop("vector", None)
    if facts is None:
        return None
    cycles, flags = Cycles(**facts.pop("cycles")), tuple(facts.pop("flags"))
    return VectorUnit(name=raw["architecture"], flags=flags, cycles=cycles, **facts)


def missing_tools(sheet: ChipSheet) -> dict[str, str]:
    """Tools that ``sheet`` needs and PATH lacks, each with how to install it."""
    return {tool: how for tool, how in sheet.needs.items() if shutil.which(tool) is None}


def best_isa(sheet: ChipSheet, cpu_flags: frozenset[str]) -> Isa:
    """The first instruction set of ``sheet`` that a processor with ``cpu_flags`` has.

    Raises:
        ChipError: none fits.
    """
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
