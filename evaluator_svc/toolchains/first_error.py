"""The line of a compiler's log that says what is wrong (pure)."""

from __future__ import annotations

import re

_ERROR = re.compile(
    r"(fatal )?error: |internal compiler error|\bError: "  # compilers; assemblers begin with a capital
    r"|undefined (reference|symbol)|multiple definition|ptxas (fatal|error)|PLEASE submit a bug report|ld returned"
)
CHARS = 400


def first_error(log: str, otherwise: str) -> str:
    """The first line that looks like an error, else the last there is; ``otherwise`` where nothing was said."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if _ERROR.search(line)), lines[-1] if lines else otherwise)[:CHARS]
