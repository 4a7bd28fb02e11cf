"""Every entry of the suite, by the chip that runs it."""

from __future__ import annotations

from evaluator_svc.target import Kind
from shared import chips
from tests.cheats.catalogue import cpp, operators, python, triton
from tests.cheats.manifest import Candidate, Entry

CPU, GPU = "cpu-x86_64", "nvidia-sm_90"
ENTRIES: dict[str, tuple[Entry, ...]] = {
    CPU: (*cpp.CHEATS, *cpp.LOOK_ALIKES, *python.CHEATS, *python.LOOK_ALIKES, *operators.REFUSED),
    GPU: (*triton.CHEATS, *triton.LOOK_ALIKES, *python.CHEATS),
}


def entries(chip: str, kind: Kind) -> tuple[Entry, ...]:
    """What ``chip`` can run, one operator after the other, since a worker keeps few of them.

    ``kind`` is what stands for the chip on this machine: an interpreter times nothing and has no device.
    """
    languages = chips.load(chip).languages
    chosen = [
        entry
        for entry in ENTRIES[chip]
        if not isinstance(entry, Candidate)
        or (
            entry.language in languages
            and (kind is Kind.GPU or not entry.needs_gpu)
            and (kind is not Kind.INTERPRETED or not entry.needs_clock)
        )
    ]
    return tuple(sorted(chosen, key=lambda e: (e.operator, e.threads if isinstance(e, Candidate) else 1)))
