"""Which error a failed evaluation shows, told apart from where it showed it (pure).

Two failures have one signature when they differ in places and numbers only: paths, lines, columns, addresses, indices,
sizes. So the search finds what failed like this before, and a prompt says it once.
"""

from __future__ import annotations

import re

from shared.events import Evaluation, Status

CHARS_MAX = 160

_PLACE = re.compile(r"(?:[\w.~-]*/)*[\w.-]+\.\w{1,5}:\d+(?::\d+)?:?\s*")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_NUMBER = re.compile(r"(?<![A-Za-z_\d])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def signature(evaluation: Evaluation) -> str:
    """Status and message; empty for one that passed. Equal signatures are equal errors."""
    if evaluation.status is Status.PASSED:
        return ""
    first_line = evaluation.why.strip().partition("\n")[0]  # the rest quotes the source
    why = _NUMBER.sub("N", _ADDRESS.sub("N", _PLACE.sub("", first_line)))
    return f"{evaluation.status.value} {' '.join(why.split())}".strip()[:CHARS_MAX]
