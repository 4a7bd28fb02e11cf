"""Policy parameters: declared as dataclass fields with a range, read from a search's ``policy_parameters`` (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any, TypeVar

from shared.errors import UserError
from shared.events import Entry

P = TypeVar("P")


def parameter(default: float, low: float, high: float) -> Any:
    """A number in ``low..high``; whole when ``default`` is."""
    return field(default=default, metadata={"low": low, "high": high})


def read(kind: type[P], name: str, entries: Sequence[Entry]) -> P:
    """Build ``kind`` from ``entries``.

    Raises:
        UserError: unknown or repeated parameter, not a number, or out of range.
    """
    known = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, float] = {}
    for entry in entries:
        where = f"policy {name}, parameter {entry.name}"
        if entry.name not in known:
            listed = ", ".join(known) or "none"
            raise UserError("no such parameter", where=where, hint=f"{name} takes: {listed}")
        if entry.name in values:
            raise UserError("given twice", where=where)
        item = known[entry.name]
        low, high = item.metadata["low"], item.metadata["high"]
        values[entry.name] = _number(entry.value, whole=isinstance(item.default, int), where=where)
        if not low <= values[entry.name] <= high:
            raise UserError(f"{entry.value} is out of range", where=where, hint=f"{low} to {high}")
    return kind(**values)


def _number(text: str, *, whole: bool, where: str) -> float:
    try:
        return int(text) if whole else float(text)
    except ValueError as error:
        kind = "a whole number" if whole else "a number"
        raise UserError(f"`{text}` is not {kind}", where=where) from error
