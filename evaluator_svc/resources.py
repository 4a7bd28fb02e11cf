"""What a kernel takes of a GPU's multiprocessor, as its compiler says, and what follows from that (pure).

The report is made where the candidate's code runs (``hosted.offline``), so it is checked for form and believed only
against the candidate: it refuses a kernel that cannot be launched, and is advice otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluator_svc.layers import Layer, caught
from shared.chips import Gpu
from shared.events import Entry, Status

KERNELS_MAX = 8
ERROR_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Of one kernel. ``registers`` of a thread, accumulators included; ``shared`` of a block and ``stack`` of a thread
    in bytes: what is on the stack went there because registers were short. ``None``: the compiler did not tell.
    """

    name: str
    blocks: int
    """Of the launch."""
    warps: int
    """Of a block."""
    shared: int
    registers: int | None = None
    stack: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """``error`` is a compiler's, empty for none."""

    kernels: tuple[Resources, ...]
    error: str = ""


def parse(text: str) -> Report | None:
    """What a report says; None when it is not of the form that ``hosted.offline`` writes."""
    try:
        said = json.loads(text)
        kernels = tuple(_kernel(each) for each in said["kernels"][:KERNELS_MAX])
        error = said["error"]
        return Report(kernels=kernels, error=error) if isinstance(error, str) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def beyond(report: Report, gpu: Gpu) -> tuple[Status, tuple[Entry, ...]] | None:
    """Why a kernel cannot be launched on ``gpu``, if it cannot; compiler errors first."""
    if report.error:
        first = report.error[:ERROR_CHARS]
        return Status.COMPILE_ERROR, (caught(Layer.BUILD), Entry(name="first_error", value=first))
    for kernel in report.kernels:
        threads = kernel.warps * gpu.warp
        too_much = (
            ("bytes of shared memory a block", kernel.shared, gpu.shared_bytes),
            ("threads a block", threads, gpu.threads_max),
            ("registers a thread", kernel.registers or 0, gpu.registers_max),
            ("registers a block", (kernel.registers or 0) * threads, gpu.registers),
        )
        for what, taken, there in too_much:
            if taken > there:
                said = f"{kernel.name} needs {taken} {what}, {gpu.name} has {there}"
                return Status.LAUNCH_FAILED, (caught(Layer.LAUNCH), Entry(name="resources", value=said))
    return None


def occupancy(kernel: Resources, gpu: Gpu) -> tuple[int, str] | None:
    """Warps resident on a multiprocessor, and what limits them; None where the compiler did not tell registers.

    As the vendors' calculators do it (CUDA C++ Programming Guide, "Occupancy calculator"; LLVM's AMDGPU user guide):
    registers are given out to a warp in steps, from its partition's share.
    """
    if kernel.registers is None:
        return None
    step = gpu.register_granule
    of_warp = -(-max(kernel.registers, 1) // step) * step * gpu.warp
    by_registers = gpu.partitions * (gpu.registers // gpu.partitions // of_warp) // kernel.warps
    taken = kernel.shared + gpu.shared_reserved
    by_shared = gpu.shared_total // taken if taken else gpu.blocks_max
    limits = {
        "warps": gpu.warps_max // kernel.warps,
        "blocks": gpu.blocks_max,
        "registers": by_registers,
        "shared memory": by_shared,
    }
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit] * kernel.warps, limit


def entries(report: Report, gpu: Gpu) -> tuple[Entry, ...]:
    """A line of evidence for each kernel."""
    return tuple(Entry(name="resources", value=_line(kernel, gpu)) for kernel in report.kernels)


def spills(report: Report) -> Sequence[str]:
    """Names of kernels that keep registers in memory."""
    return [kernel.name for kernel in report.kernels if kernel.stack]


def _line(kernel: Resources, gpu: Gpu) -> str:
    parts = [f"{kernel.blocks} blocks of {kernel.warps} warps"]
    if kernel.registers is not None:
        parts.append(f"{kernel.registers} registers a thread")
    if kernel.stack is not None:
        parts.append(f"{kernel.stack} bytes spilled a thread" if kernel.stack else "nothing spilled")
    parts.append(f"{kernel.shared} bytes of shared memory a block")
    resident = occupancy(kernel, gpu)
    if resident is not None:
        warps, limit = resident
        parts.append(f"{warps} of {gpu.warps_max} warps resident, limited by {limit}")
    return f"{kernel.name}: {', '.join(parts)} (compiled for {gpu.name}, not run there)"


def _kernel(said: Any) -> Resources:
    registers = said.get("registers")
    stack = said.get("stack")
    name = said["name"]
    if not isinstance(name, str):
        raise TypeError("a name that is no text")
    return Resources(
        name="".join(c if c.isprintable() else "?" for c in name[:48]),
        blocks=_count(said["blocks"]),
        warps=max(1, _count(said["warps"])),
        shared=_count(said["shared"]),
        registers=None if registers is None else _count(registers),
        stack=None if stack is None else _count(stack),
    )


def _count(said: Any) -> int:
    if type(said) is not int or not 0 <= said < 1 << 63:
        raise ValueError("no count")
    return said
