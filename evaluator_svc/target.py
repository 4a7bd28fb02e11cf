"""What a worker's kernels run on: this machine's cores, its GPU, or, where the chip is missing, an interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evaluator_svc import nvidia
from shared import chips
from shared.chips import EXTERNAL, Board, Gpu, VectorUnit
from shared.chips.external import External

NVIDIA, AMD = "nvidia", "amd"
"""Toolchains' names in chip sheets."""
BACKENDS = {NVIDIA: "cuda", AMD: "hip"}
"""Triton's names for them."""
CACHE_BYTES = 64 << 20
"""Of a GPU's second-level cache where the sheet does not say: more than Hopper has."""


class Kind(StrEnum):
    CPU = "cpu"
    GPU = "cuda"
    INTERPRETED = "interpreted"
    """On the cores, by a language's interpreter: right or wrong can be told, fast or slow can only be modelled."""
    EMULATED = "emulated"
    """On an emulator that counts instructions."""
    EXTERNAL = "external"
    """By a vendor's commands, whatever these use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """``device`` names what is leased while something is timed."""

    kind: Kind
    device: str
    chip: str = ""
    """Its id; empty where nothing depends on it."""
    missing: Gpu | None = None
    """The GPU that kernels are interpreted in place of; its compiler is here all the same."""
    board: Board | None = None
    """What its costs are modelled by."""
    vector: VectorUnit | None = None
    """What is emulated."""
    external: External | None = None
    """The vendor's commands."""
    cache_bytes: int = 0
    """Of a present GPU's second-level cache, by its sheet;"""
    memory_bytes: int = 0
    """of its memory, by its driver. 0: not known."""
    backend: str = ""
    """Of that compiler, as Triton names it."""

    @property
    def on_gpu(self) -> bool:
        return self.kind is Kind.GPU

    @property
    def timed(self) -> bool:
        """Whether a time measured here says anything about the chip."""
        return self.kind in (Kind.CPU, Kind.GPU)

    @property
    def architecture(self) -> int | str:
        """Of the missing GPU, as Triton names it: ``90``, ``gfx942``."""
        name = self.missing.name if self.missing else ""
        return int(name.removeprefix("sm_")) if name.startswith("sm_") else name

    @property
    def torch_device(self) -> str:
        """Where the reference and the baselines compute, as torch names it."""
        return "cuda" if self.on_gpu else "cpu"


def target_of(chip: str) -> Target:
    """What this machine has for ``chip``.

    Raises:
        ChipError: unknown chip.
    """
    sheet = chips.load(chip)
    if sheet.toolchain == EXTERNAL:
        return Target(kind=Kind.EXTERNAL, device="cpu", chip=chip, external=sheet.external)
    if sheet.vector is not None:
        return Target(kind=Kind.EMULATED, device="cpu", vector=sheet.vector)
    if sheet.toolchain not in BACKENDS:
        return Target(kind=Kind.CPU, device="cpu")
    if sheet.toolchain == NVIDIA and nvidia.present():
        cache_bytes = sheet.board.cache_kib << 10 if sheet.board else CACHE_BYTES
        return Target(kind=Kind.GPU, device=nvidia.uuid(), cache_bytes=cache_bytes, memory_bytes=nvidia.memory_bytes())
    return Target(
        kind=Kind.INTERPRETED, device="cpu", missing=sheet.gpu, board=sheet.board, backend=BACKENDS[sheet.toolchain]
    )
