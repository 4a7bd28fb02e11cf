"""What a worker's kernels run on: this machine's cores, its GPU, or, where the chip is missing, an interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evaluator_svc import nvidia
from shared import chips

NVIDIA = "nvidia"
"""The toolchain's name in a chip sheet."""


class Kind(StrEnum):
    CPU = "cpu"
    GPU = "cuda"
    INTERPRETED = "interpreted"
    """On the cores, by a language's interpreter: right or wrong can be told, fast or slow cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """``device`` names what is leased while something is timed."""

    kind: Kind
    device: str

    @property
    def on_gpu(self) -> bool:
        return self.kind is Kind.GPU

    @property
    def timed(self) -> bool:
        """Whether a time measured here says anything about the chip."""
        return self.kind is not Kind.INTERPRETED

    @property
    def torch_device(self) -> str:
        """Where the reference and the baselines compute, as torch names it."""
        return "cuda" if self.on_gpu else "cpu"


def target_of(chip: str) -> Target:
    """What this machine has for ``chip``.

    Raises:
        ChipError: unknown chip.
    """
    if chips.load(chip).toolchain != NVIDIA:
        return Target(kind=Kind.CPU, device="cpu")
    if nvidia.present():
        return Target(kind=Kind.GPU, device=nvidia.uuid())
    return Target(kind=Kind.INTERPRETED, device="cpu")
