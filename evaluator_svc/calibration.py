"""Measuring this machine's peaks: bandwidth of each cache level and of memory, and the fp32 multiply-add rate.

A peak is the best of several trials, and of earlier calibrations of the last hours: a disturbed calibration must never
lower the speed-of-light floor's divisor and so accuse an honest kernel.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator_svc.roofline import LEVELS, MEMORY, Peaks
from evaluator_svc.runner.program import compiler
from shared import chips
from shared.child_environment import without_secrets
from shared.errors import Fatal
from shared.machine import Processor, processor

SOURCE = Path(__file__).with_name("calibration.cpp")
VALID_S = 6 * 3600
RUN_TIMEOUT_S = 60
BUILD_TIMEOUT_S = 120
GIGA = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Peaks for ``threads`` threads on ``cpus``. ``at_s`` is the wall clock of the measurement."""

    peaks: Peaks
    threads: int
    at_s: float


async def calibrate(chip: str, cache: Path, *, threads: int, cpus: Sequence[int], afresh: bool = False) -> Calibration:
    """The machine's peaks, from ``cache`` when measured within ``VALID_S`` and not ``afresh``.

    The caller has the cores to itself.

    Raises:
        ChipError: no compiler, or no instruction set of the chip fits.
        Fatal: the calibration program failed.
    """
    return await asyncio.to_thread(_calibrate, chip, cache, threads, tuple(cpus), afresh)


def _calibrate(chip: str, cache: Path, threads: int, cpus: tuple[int, ...], afresh: bool) -> Calibration:
    machine = processor()
    isa = chips.best_isa(chips.load(chip), machine.flags)
    identity = [machine.model, platform.node(), isa.name, str(threads), hashlib.sha256(SOURCE.read_bytes()).hexdigest()]
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:24]
    kept = cache / "calibrations" / f"{digest}.json"
    rates = _read(kept)
    if not rates or afresh:
        program = _program(cache, digest, isa.flags)
        measured = _run(program, machine, threads, cpus)
        rates = {name: max(rate, rates.get(name, 0.0)) for name, rate in measured.items()}
        _keep(kept, rates)
    capacity = {level: machine.cache_bytes.get(level if level != "L1" else "L1d", 0) for level in LEVELS}
    shared = {level: size if level == "L3" else size * threads for level, size in capacity.items()}
    peaks = Peaks(
        bandwidth={name: rates[name] * GIGA for name in (*LEVELS, MEMORY) if name in rates},
        capacity=shared,
        flops=rates.get("fma_f32", 0.0) * GIGA,
    )
    return Calibration(peaks=peaks, threads=threads, at_s=kept.stat().st_mtime)


def _read(kept: Path) -> dict[str, float]:
    if not kept.exists() or time.time() - kept.stat().st_mtime > VALID_S:
        return {}
    try:
        found = json.loads(kept.read_text())
    except ValueError:
        return {}  # torn by a crash: measured again
    return {str(name): float(rate) for name, rate in found.items()}


def _keep(kept: Path, rates: dict[str, float]) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    scratch = kept.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(rates, sort_keys=True))
    scratch.replace(kept)


def _program(cache: Path, digest: str, flags: tuple[str, ...]) -> Path:
    program = cache / "programs" / f"calibration-{digest}"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        output = Path(scratch) / "calibration"
        command = [str(compiler()), "-std=c++17", "-O3", "-fopenmp", *flags, str(SOURCE), "-o", str(output)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
            env=without_secrets(os.environ),
        )
        if done.returncode != 0:
            raise Fatal(f"the calibration program does not build: {done.stderr.strip()[:300]}")
        output.rename(program)
    return program


def _run(program: Path, machine: Processor, threads: int, cpus: tuple[int, ...]) -> dict[str, float]:
    sizes = [str(machine.cache_bytes.get(level, 0)) for level in ("L1d", "L2", "L3")]
    command = [str(program), str(threads), *sizes]
    if cpus:
        command = ["taskset", "-c", ",".join(map(str, cpus)), *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise Fatal(f"the calibration program ended with status {done.returncode}: {done.stderr.strip()[:300]}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}
