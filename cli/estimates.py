"""What kernels cost on chips without a clock, in words that claim no time (pure).

A cost is counted on an emulator or computed by a model. Neither is a measurement of the chip, so every number says
which it is, and in what unit.
"""

from __future__ import annotations

from typing import Any

from search_svc.scoring import comparable
from search_svc.tree import Reference
from shared.events import PPM, Basis, Count, Estimate

FIRST_DRAFT = "the first draft"
MEANING = {
    Basis.COUNTED: "counted exactly on an emulator; no time was measured",
    Basis.MODELLED: "by a model of the chip; nothing was measured",
}


def cost(estimate: Estimate) -> str:
    """``4,711 model cycles a call (counted)``."""
    return f"{amount(estimate.cost, estimate.unit)} a call ({estimate.basis.value})"


def amount(value: int, unit: str) -> str:
    """``4,711 model cycles``."""
    return f"{value:,} {unit}"


def against(ppm: int, basis: str) -> str:
    """A score over the first draft: ``1.84x less than the first draft (counted)``, the draft itself as such."""
    if ppm == PPM:
        return f"as {FIRST_DRAFT} ({basis})"
    much, less = (ppm / PPM, "less") if ppm > PPM else (PPM / max(ppm, 1), "more")
    return f"{much:.2f}x {less} than {FIRST_DRAFT} ({basis})"


def counts(found: tuple[Count, ...]) -> str:
    """``instructions 2,826, branches 17``."""
    return ", ".join(f"{count.name} {count.value:,}" for count in found)


def plain(estimate: Estimate | None, reference: Reference | None = None) -> dict[str, Any] | None:
    """As a JSON object; ``times_less`` is the first draft's cost over this one's, null where there is none to compare
    with.
    """
    if estimate is None:
        return None
    alike = reference is not None and comparable(estimate, reference)
    return {
        "basis": estimate.basis.value,
        "cost": estimate.cost,
        "unit": estimate.unit,
        "first_draft": reference.cost if reference and alike else None,
        "times_less": reference.cost / estimate.cost if reference and alike else None,
        "counts": {count.name: count.value for count in estimate.counts},
    }
