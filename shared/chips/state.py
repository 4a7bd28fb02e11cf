"""What can be done for a chip on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from shared import chips
from shared.chips import ChipSheet

TOOLCHAINS = ("cpu", "nvidia", "amd", "riscv", "simulated")
"""That an evaluator of this version has; ``external`` has what its sheet names."""
NO_TOOLCHAIN = "none in this version; give it one by a sheet of your own (docs/chips.md)"
NO_ADAPTER = "its maker's is not public; name three commands in a sheet of your own (docs/chips.md)"


class Standing(StrEnum):
    READY = "ready"
    COMPILE_ONLY = "compile-only"
    MISSING = "missing tool"
    NONE = "no toolchain"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """``missing``: tool -> how to get it. ``said``: what can be told all the same, or why nothing can."""

    standing: Standing
    missing: dict[str, str]
    said: str = ""
    languages: dict[str, dict[str, str]] = field(default_factory=dict)
    """Languages that something is missing for: tool -> how to get it."""

    def __str__(self) -> str:
        needs = [f"needs {tool}: {how}" for tool, how in self.missing.items()]
        needs += [
            f"{language} needs {tool}: {how}"
            for language, tools in self.languages.items()
            for tool, how in tools.items()
        ]
        head = f"{self.standing.value}: {self.said}" if self.said else self.standing.value
        return "; ".join([head, *needs] if self.said or not self.missing else needs)


def of(sheet: ChipSheet) -> State:
    """How ``sheet`` stands here."""
    missing = chips.missing_tools(sheet)
    if sheet.toolchain == chips.EXTERNAL and sheet.external is None:
        return State(standing=Standing.NONE, missing={}, said=NO_ADAPTER)
    if sheet.toolchain not in (*TOOLCHAINS, chips.EXTERNAL):
        return State(standing=Standing.NONE, missing={}, said=NO_TOOLCHAIN)
    languages = {name: tools for name in sheet.languages if (tools := chips.missing_for(sheet, name))}
    if not missing:
        return State(standing=Standing.READY, missing={}, languages=languages)
    if sheet.without:
        return State(standing=Standing.COMPILE_ONLY, missing=missing, said=sheet.without, languages=languages)
    return State(standing=Standing.MISSING, missing=missing, languages=languages)
