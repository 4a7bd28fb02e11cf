"""Every chip sheet in a line, and below them what each kind of standing means and what is missing (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from shared.chips import ChipSheet
from shared.chips.state import State

COLUMNS = ("chip", "state", "languages", "title")


def rows(found: Sequence[tuple[ChipSheet, State]]) -> list[tuple[str, ...]]:
    return [(sheet.id, state.standing.value, ", ".join(sheet.languages), sheet.title) for sheet, state in found]


def remarks(found: Sequence[tuple[ChipSheet, State]]) -> list[tuple[str, str, str]]:
    """What is true of several chips is said once: of what, what there is to say, and of which chips."""
    said: dict[tuple[str, str], list[str]] = {}
    for sheet, state in found:
        told = [(state.standing.value, state.said)] if state.said else []
        told += [(f"needs {tool}", how) for tool, how in state.missing.items()]
        for language, tools in state.languages.items():
            told += [(f"{language} needs {tool}", how) for tool, how in tools.items()]
        for remark in told:
            said.setdefault(remark, []).append(sheet.id)
    return [(head, what, ", ".join(ids)) for (head, what), ids in sorted(said.items())]
