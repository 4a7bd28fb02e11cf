"""What reading an answer ends with (pure)."""

from __future__ import annotations

from dataclasses import dataclass

MENDABLE = frozenset(
    {
        "ambiguous_edit",
        "bad_json",
        "code_in_json",
        "duplicate",
        "empty",
        "illegal_choice",
        "no_block",
        "no_change",
        "no_entry",
        "several_blocks",
        "several_choices",
        "syntax",
        "truncated",
        "unmatched_edit",
        "wrong_language",
    }
)
"""Codes that another turn of the conversation can mend. A refusal, binary output and a flood of text it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """``rationale`` is the prose outside the code, on one line and cut."""

    source: str
    rationale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unparsable:
    """``code``: one of ``MENDABLE``, or refused, too_long, unreadable. ``shown``: lines for whoever is to mend it."""

    code: str
    detail: str
    shown: str = ""

    @property
    def mendable(self) -> bool:
        return self.code in MENDABLE
