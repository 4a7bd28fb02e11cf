"""What processor this is, read from the kernel's own files; the only place that reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """``flags`` as in ``/proc/cpuinfo``. ``cache_bytes`` maps ``L1d``, ``L2``, ``L3`` to the size one core sees.

    What the machine does not tell is empty: ``model`` is "", ``cache_bytes`` lacks the level.
    """

    model: str
    flags: frozenset[str]
    cores: int
    """Logical processors this process may run on."""
    cache_bytes: Mapping[str, int] = field(default_factory=dict)


def processor(cpuinfo: Path = CPUINFO, caches: Path = CACHES) -> Processor:
    """Facts of the processor this runs on, read once. Unreadable files count as "not told"."""
    facts = _first_processor(cpuinfo)
    return Processor(
        model=facts.get("model name", ""),
        # "Features" is the name on ARM.
        flags=frozenset((facts.get("flags") or facts.get("Features") or "").split()),
        cores=len(os.sched_getaffinity(0)),
        cache_bytes=dict(_cache_bytes(caches)),
    )


@cache
def _first_processor(cpuinfo: Path) -> dict[str, str]:
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


@cache
def _cache_bytes(caches: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for index in sorted(caches.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        suffix = {"Data": "d", "Instruction": "i"}.get(kind, "")
        sizes[f"L{level}{suffix}"] = _bytes(size)
    return sizes


def _bytes(text: str) -> int:
    """``32K`` -> 32768."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)
