"""What a profiler counted of one launch of a kernel (pure): the same names whoever's chip it ran on.

None is *not told*: the tool has no such counter on this chip, refused it, or wrote something that is no number. It is
never taken for zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAME_CHARS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Warps that wait for ``reason``, as a share of all warps' time that the tool told of."""

    reason: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """One launch. Shares and hit rates run from 0 to 1: of a unit's peak rate over the launch, or over the cycles in
    which a multiprocessor had work (those of ``l1``, ``issue`` and the pipes on NVIDIA).

    A *multiprocessor* is a compute unit on AMD, a *block* a workgroup, a *warp* a wavefront.
    """

    kernel: str
    duration_ns: float | None = None
    blocks: float | None = None
    threads: float | None = None
    """Of a block."""
    multiprocessors: float | None = None
    waves: float | None = None
    """Blocks, divided by those that are resident on the whole chip at once."""

    dram_read_bytes: float | None = None
    dram_written_bytes: float | None = None
    dram_share: float | None = None
    l2_share: float | None = None
    l2_hit: float | None = None
    l1_share: float | None = None
    """Of the first-level cache, which holds shared memory, too. On AMD: time in which the memory unit is busy."""
    l1_hit: float | None = None
    bank_conflicts: float | None = None
    """Accesses to shared memory that conflicts added, of all. On AMD: time in which local memory waits for them."""
    load_use: float | None = None
    store_use: float | None = None
    """Bytes that threads asked for, of those in the sectors that were moved."""
    memory_share: float | None = None
    """Of the memory unit that is nearest to its peak: DRAM, L2 or L1."""

    compute_share: float | None = None
    """Of the multiprocessors' unit that is nearest to its peak."""
    tensor_share: float | None = None
    fma_share: float | None = None
    alu_share: float | None = None
    """On AMD: all vector arithmetic but matrix products (ROCm issue 3122)."""
    special_share: float | None = None
    double_share: float | None = None
    issue_share: float | None = None
    """Cycles in which an instruction was issued."""

    occupancy: float | None = None
    """Warps resident on average, of those that a multiprocessor can hold."""
    occupancy_possible: float | None = None
    """What registers, shared memory and the size of blocks allow."""
    occupancy_limiter: str | None = None
    registers: float | None = None
    """Of a thread."""
    shared_bytes: float | None = None
    """Of a block."""
    spill_load_bytes: float | None = None
    spill_store_bytes: float | None = None
    """Moved to and from the stack of threads: registers that were short."""
    scratch_bytes: float | None = None
    """Of a thread, where the tool tells what is reserved for spills and not what is moved."""
    stalls: tuple[Stall, ...] = ()
    """Largest first; empty where the tool tells none."""

    @property
    def dram_bytes(self) -> float | None:
        return added(self.dram_read_bytes, self.dram_written_bytes)

    @property
    def spilled(self) -> float | None:
        """Bytes moved or reserved for spills."""
        moved = added(self.spill_load_bytes, self.spill_store_bytes)
        return self.scratch_bytes if moved is None else moved


def added(*numbers: float | None) -> float | None:
    """Their sum; None where one of them is not told."""
    told = [number for number in numbers if number is not None]
    return sum(told) if len(told) == len(numbers) else None


def named(text: str) -> str:
    """A kernel's name for evidence: foreign text, so only what names are made of, and not much of it."""
    kept = "".join(c if c.isalnum() or c in "_:<>," else " " for c in text if c.isascii())
    return " ".join(kept.split())[:NAME_CHARS] or "?"


def ranked(stalls: Sequence[tuple[str, float]]) -> tuple[Stall, ...]:
    """Shares of waiting, from numbers in any one unit."""
    total = sum(amount for _, amount in stalls)
    if total <= 0:
        return ()
    ordered = sorted(stalls, key=lambda each: -each[1])
    return tuple(Stall(reason=reason, share=amount / total) for reason, amount in ordered)
