"""What ``ncu --csv --page raw`` printed, as counters (pure).

Of the form that Nsight Compute writes: notes that begin with ``==``, one line of column names, one of units, and a line
a launch (Nsight Compute CLI guide, "Console output"). Whatever is not of that form is not told; the file was written
beside foreign code, so nothing in it is trusted to be well-formed.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evaluator_svc.profilers import ncu_metrics
from evaluator_svc.profilers.counters import Counters, named, ranked

KERNEL = "Kernel Name"
FIRST = '"ID",'
KERNELS_MAX = 64
FORBIDDEN = "ERR_NVGPUCTRPERM"
NOTE_CHARS = 200
_NUMBER = re.compile(r"(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][-+]?\d+)?")
_STEP = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
"""Nsight Compute counts bytes in powers of ten."""
_BYTES = re.compile(r"([kmgt]?)(?:byte|b)s?(/block)?", re.IGNORECASE)
_TIMES = {
    "ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9,
}  # fmt: skip

Row = Mapping[str, tuple[str, str]]
"""Value and unit of each column."""
_Reader = Callable[[Row, str], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """``refused``: why there is nothing, in the tool's words; empty where there are kernels."""

    kernels: tuple[Counters, ...]
    refused: str = ""


def parse(text: str) -> Report:
    """The launches in the order in which they were made."""
    lines = text.splitlines()
    begin = next((at for at, line in enumerate(lines) if line.startswith(FIRST)), None)
    rows = [] if begin is None else _rows(lines[begin:])
    if rows:
        return Report(kernels=tuple(_counters(row) for row in rows[:KERNELS_MAX]))
    return Report(kernels=(), refused=complaint(text) or "it wrote no launch")


def complaint(text: str) -> str:
    """The first error among the tool's notes, else the last warning; empty for none."""
    notes = [line.strip() for line in text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    forbidden = [line for line in notes if FORBIDDEN in line]
    errors = [line for line in notes if line.startswith("==ERROR==")]
    found = next(iter((*forbidden, *errors, *reversed(notes))), "")
    said = "".join(c if c.isprintable() else " " for c in found.partition("== ")[2])
    return said[:NOTE_CHARS]


def number(text: str) -> float | None:
    """``1,234.5`` is a number; ``n/a``, ``(!) nan``, ``inf``, what is negative and an empty field are none."""
    text = text.strip()
    if not text or not _NUMBER.fullmatch(text) or not any(c.isdigit() for c in text):
        return None
    value = float(text.replace(",", ""))
    return value if math.isfinite(value) else None


def _rows(lines: list[str]) -> list[Row]:
    try:
        table = list(csv.reader(line for line in lines if line.startswith('"')))
    except csv.Error:  # a field without end
        return []
    if len(table) < 3 or KERNEL not in table[0]:
        return []
    names, units, *launches = table
    if len(units) != len(names):
        return []
    return [
        {name: (value, unit) for name, value, unit in zip(names, launch, units, strict=True)}
        for launch in launches
        if len(launch) == len(names)
    ]


def _counters(row: Row) -> Counters:
    conflicts, accesses = _count(row, ncu_metrics.CONFLICTS), _count(row, ncu_metrics.SHARED_ACCESSES)
    limits = {what: _count(row, name) for what, name in ncu_metrics.LIMITS.items()}
    waits = ((reason, _count(row, name)) for reason, name in ncu_metrics.STALLS.items())
    told: dict[str, float | None] = {
        **{field: _first(row, names, _time) for field, names in ncu_metrics.TIMES.items()},
        **{field: _first(row, names, _bytes) for field, names in ncu_metrics.BYTES.items()},
        **{field: _first(row, names, _share) for field, names in ncu_metrics.SHARES.items()},
        **{field: _first(row, names, _count) for field, names in ncu_metrics.COUNTS.items()},
    }
    return Counters(
        kernel=named(row[KERNEL][0]),
        bank_conflicts=None if conflicts is None or accesses is None else _ratio(conflicts, accesses),
        occupancy_limiter=_least(limits),
        stalls=ranked([(reason, amount) for reason, amount in waits if amount is not None]),
        **told,
    )


def _first(row: Row, names: tuple[str, ...], read: _Reader) -> float | None:
    return next((value for name in names if (value := read(row, name)) is not None), None)


def _count(row: Row, name: str) -> float | None:
    """Counts have units in words, which say nothing that the name does not."""
    return number(row[name][0]) if name in row else None


def _bytes(row: Row, name: str) -> float | None:
    value, unit = _count(row, name), _BYTES.fullmatch(row[name][1].strip()) if name in row else None
    return None if value is None or unit is None else value * _STEP[unit[1].lower()]


def _time(row: Row, name: str) -> float | None:
    value = _count(row, name)
    factor = _TIMES.get(row[name][1].strip()) if name in row else None
    return None if value is None or factor is None else value * factor


def _share(row: Row, name: str) -> float | None:
    value = _count(row, name)
    return None if value is None or row[name][1].strip() not in ("%", "") else value / 100


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _least(limits: Mapping[str, float | None]) -> str | None:
    """What allows the fewest blocks; None unless all are told, because the missing one might."""
    known = {what: limit for what, limit in limits.items() if limit is not None}
    return min(known, key=lambda what: known[what]) if len(known) == len(limits) else None
