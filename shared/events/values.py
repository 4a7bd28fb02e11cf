"""What several events name: entries, operators, kernels (pure)."""

from __future__ import annotations

from dataclasses import dataclass

PPM = 1_000_000
PRIORITIES = range(-(2**31), 2**31)
"""What a search may have: a queue tells no others apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A named value in a list that must keep its order: evidence, environment, parameters, scores."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBudget:
    """What a search may spend on models in all. Zero means "no limit of its own": the deployment's still holds."""

    tokens: int = 0
    """Of prompts and answers together."""
    cost_micro: int = 0
    """Millionths of the configured currency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRef:
    """An operator frozen by its hash. ``source_hash`` names the blob with the reference's text."""

    name: str
    source_hash: str
    kind: str = "kernelbench"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRef:
    """Exactly what is built and measured. ``kernel_id = derive(language, source_hash, *flags, entry)``.

    ``schedule_hash`` names the blob with the schedule's canonical JSON, or is empty when no schedule wrote the kernel.
    """

    kernel_id: str
    language: str
    source_hash: str
    flags: tuple[str, ...] = ()
    entry: str = "ke_launch"
    schedule_hash: str = ""
