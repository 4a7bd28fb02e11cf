"""The door to NVIDIA's driver: what ``nvidia-smi`` says of the GPU, from outside every candidate's process.

The program comes with the driver, so a machine that has the device has it. A field that it cannot tell is None.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROGRAM = "nvidia-smi"
PARAMETERS = Path("/proc/driver/nvidia/params")
ADMIN_ONLY = "RmProfilingAdminOnly"
"""Of the driver's parameters: 1 where only administrators may read hardware counters (NVIDIA's "Permission issue with
performance counters")."""
TIMEOUT_S = 20
FIELDS = (
    "uuid", "name", "driver_version", "memory.used", "clocks.sm", "clocks.max.sm", "temperature.gpu",
    "clocks_event_reasons.hw_slowdown", "clocks_event_reasons.sw_thermal_slowdown",
    "clocks_event_reasons.hw_thermal_slowdown",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The first device. Memory in MiB, clocks in MHz, temperature in degrees Celsius."""

    uuid: str
    name: str
    driver: str
    memory_used: int | None
    clock: int | None
    clock_max: int | None
    temperature: int | None
    throttled: bool | None
    """By hardware or for heat."""


def present() -> bool:
    """Whether there is a device, a driver, and the program to ask it."""
    return Path("/dev/nvidia0").exists() and Path("/dev/nvidiactl").exists() and shutil.which(PROGRAM) is not None


def ask() -> Gpu | None:
    """The device as it is now; None when the driver does not answer."""
    said = _said(FIELDS)
    return None if said is None else parse(said)


def parse(text: str) -> Gpu | None:
    """The program's one line; None when it is not of that form."""
    rows = list(csv.reader(text.splitlines(), skipinitialspace=True))
    if len(rows) != 1 or len(rows[0]) != len(FIELDS):
        return None
    said = dict(zip(FIELDS, rows[0], strict=True))
    reasons = [said[name] for name in FIELDS if name.startswith("clocks_event_reasons")]
    known = all(reason in ("Active", "Not Active") for reason in reasons)
    return Gpu(
        uuid=said["uuid"],
        name=said["name"],
        driver=said["driver_version"],
        memory_used=_number(said["memory.used"]),
        clock=_number(said["clocks.sm"]),
        clock_max=_number(said["clocks.max.sm"]),
        temperature=_number(said["temperature.gpu"]),
        throttled=any(reason == "Active" for reason in reasons) if known else None,
    )


def counters_restricted() -> bool:
    """Whether the driver says that only administrators may read hardware counters."""
    try:
        return restricted(PARAMETERS.read_text())
    except OSError:
        return False


def restricted(parameters: str) -> bool:
    """The same of the text of its parameters; False where they do not say."""
    said = dict(line.split(":", 1) for line in parameters.splitlines() if ":" in line)
    return said.get(ADMIN_ONLY, "").strip() == "1"


@cache
def memory_bytes() -> int:
    """All of the device's memory; 0 where the driver does not tell."""
    return (_number(_said(("memory.total",)) or "") or 0) << 20


@cache
def uuid() -> str:
    """The device's identity, for leases; its node's name when the driver tells none."""
    found = ask()
    return found.uuid if found else "nvidia0"


def _said(fields: Sequence[str]) -> str | None:
    """What the program prints of ``fields``; None when it does not answer."""
    try:
        done = subprocess.run(
            [PROGRAM, "-i", "0", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None
