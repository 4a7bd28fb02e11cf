"""What Compute Sanitizer wrote, read (pure). Its format is that of version 2025.3 and its documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK = "========= "
FOUND_STATUS = 86
"""What the tool is told to end with when it found errors; no program of ours ends so."""
TEXT_CHARS = 160
_ERRORS = re.compile(r"^ERROR SUMMARY: (\d+) errors?$")
_HAZARDS = re.compile(r"^RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) errors?, \d+ warnings?\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """``errors`` is None where the tool came to no end of its own. ``first``: the first finding, in its words."""

    errors: int | None
    first: str = ""


def parse(text: str, status: int | None) -> Found:
    """``status`` is the tool's exit status, None when it was ended. Findings without that status, and the status
    without findings, are no result.
    """
    lines = [line.removeprefix(MARK).rstrip() for line in text.splitlines() if line.startswith(MARK)]
    counts = [int(m[1]) for line in lines if (m := _ERRORS.match(line) or _HAZARDS.match(line))]
    if not counts or status not in (0, FOUND_STATUS) or (status == 0) is not (counts[0] == 0):
        return Found(errors=None)
    return Found(errors=counts[0], first=_first(lines) if counts[0] else "")


def complaint(text: str) -> str:
    """The tool's own word for why it looked at nothing; empty without one."""
    lines = [line.removeprefix(MARK).strip() for line in text.splitlines() if line.startswith(MARK)]
    told = [line for line in lines if line and line != "COMPUTE-SANITIZER" and "SUMMARY" not in line]
    return _printable(told[0]) if told else ""


def _first(lines: list[str]) -> str:
    """What, where, and how far off: the first lines of the first record."""
    begin = next((n for n, line in enumerate(lines) if line == "COMPUTE-SANITIZER"), -1) + 1
    record: list[str] = []
    for line in lines[begin:]:
        if "host backtrace" in line.lower() or "SUMMARY" in line or (record and not line.startswith(" ")):
            break
        record.append(line.strip())
    return _printable("; ".join(each for each in record if each))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:TEXT_CHARS]
