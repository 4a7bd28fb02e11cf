"""What a call of a Triton kernel would cost on a GPU that is not there: a model, in nanoseconds (pure).

It ranks kernels where nothing can be timed, and says nothing more: its result is labelled ``modelled``, wins nothing
and is no evidence for a skill.

Sources. Counts of one call come from Triton's interpreter (``hosted.traffic``): launches, programs, the memory each
kernel touches and what it asks of the caches, in sectors of 32 bytes; plain and special operations; multiply-adds of
matrix products by type. Registers, spills, shared memory and warps come from the compiler for the chip
(``hosted.offline``). Rates are those of a typical board, in the chip sheet (``shared.chips.Board``).

A launch costs

    launch_ns + max(memory, arithmetic) + EXPOSED * min(memory, arithmetic) + spills

- memory: what is touched, at the memory's rate, and what is asked again, at the rate of the first cache that still
  holds it. A cache holds what was asked last, as much as it has room for (Mattson et al., "Evaluation techniques for
  storage hierarchies", 1970): the counts tell how much a program has asked since, and resident programs ask side by
  side, so that a multiprocessor's cache sees as much from each of its own, the shared one from all. Rates are reached
  only by enough bytes in flight (Little's law: Volkov, "Understanding Latency Hiding on GPUs", 2016): resident warps,
  times the bytes that one asks for at once, over the latency.
- arithmetic: operations over rates, matrix products on the matrix units, slowed by as much as the busiest
  multiprocessor has more blocks than the mean (H. Wong's "tail", NVIDIA's "wave quantization").
- spills: bytes of stack of every thread, written and read once, at the memory's rate; nothing hides them.

It ignores: bank conflicts, instruction mix and issue slots, divergence, software pipelining beyond what resident warps
hide, layout conversions, the cache between launches, clocks and power, atomics' contention, and the host. Counts come
out of the candidate's process, so a kernel made to deceive them would be ranked wrongly; the outputs that the
controller knows have to be written in any case, so no cost is below that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator_svc.kernel_policy import Seen
from evaluator_svc.resources import Report, Resources, occupancy
from shared.chips import Board, Gpu
from shared.events import Basis, Bound, Count, Diagnosis, Entry, Estimate

KERNELS_MAX = 8
SECTOR = 32
"""Bytes."""
DISTANCES_MAX = 40
EXPOSED = 0.2
"""Share of the shorter of memory and arithmetic that the longer does not hide."""
FILLS = frozenset(
    f"aten.{name}"
    for name in ("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "full", "full_like", "fill_", "zero_",
                 "copy_", "clone", "contiguous", "_to_copy", "to")
)  # fmt: skip
"""Library operators that only write what they give: a launch of as many bytes. What others cost is not known here."""
SUMMARIES = {
    Bound.LAUNCH: "by the model, starting kernels is most of it: fewer launches, fused",
    Bound.MEMORY: "by the model, memory's rate is most of it: fewer passes over the data, fusion",
    Bound.LATENCY: "by the model, too few bytes are in flight to use memory's rate: more or wider warps, more blocks",
    Bound.COMPUTE: "by the model, arithmetic is most of it: cheaper operations, matrix units, less redundant work",
    Bound.OCCUPANCY: "by the model, spilled registers are most of it: smaller tiles, more warps",
}
ELEMENT_BYTES = 4
"""Of what they give; types are not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Counts of one kernel in one call, all launches together. Bytes; ``products`` are multiply-adds by type."""

    name: str
    launches: int
    programs: int
    asked: int
    """Of the caches."""
    memory: int
    """Touched at all."""
    again: Mapping[int, int] = field(default_factory=dict)
    """Asked again, by how much was asked since: at most ``2**key`` sectors. What is asked again and not told here was
    asked long ago."""
    accesses: int
    """Blocks of addresses that were read or written."""
    operations: int
    special: int
    products: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """``diagnosis`` is the model's, too: which of its terms is the largest."""

    estimate: Estimate
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """All launches of one kernel, in ns. ``starved``: the bytes in flight do not sustain the memory's rate."""

    launch: float
    memory: float
    arithmetic: float
    spills: float
    starved: bool = False

    @property
    def total(self) -> float:
        longer, shorter = max(self.memory, self.arithmetic), min(self.memory, self.arithmetic)
        return self.launch + longer + EXPOSED * shorter + self.spills


class NotModelled(Exception):
    """Why there is no estimate: a fact that the model needs is missing."""


def parse(report: str) -> tuple[Traffic, ...]:
    """The kernels of an audit's report; none when it is not of the form that ``hosted.traffic`` writes."""
    try:
        said = list(dict(json.loads(report)["traffic"]).items())[:KERNELS_MAX]
        return tuple(_kernel(name, counts) for name, counts in said)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ()


def model(
    kernels: Sequence[Traffic], report: Report, seen: Seen | None, written: int, gpu: Gpu, board: Board
) -> Modelled:
    """What a call that ran ``kernels`` costs on ``board``; ``written`` bytes are outputs.

    Raises:
        NotModelled: nothing was counted, no resources are known of a kernel, or a library operator ran besides.
    """
    if not kernels:
        raise NotModelled("no launch was counted")
    costs = [cost(kernel, _resources(kernel, report), gpu, board) for kernel in kernels]
    costs += [_fill(name, calls, elements, board) for name, (calls, elements, _) in _library(seen)]
    least = board.launch_ns + written / board.bandwidth_gb_s
    total = max(1, round(max(sum(each.total for each in costs), least)))
    return Modelled(
        estimate=Estimate(basis=Basis.MODELLED, cost=total, unit="ns", counts=_counts(kernels)),
        diagnosis=_diagnosis(costs),
    )


def cost(kernel: Traffic, needs: Resources, gpu: Gpu, board: Board) -> Cost:
    """All launches of one kernel, which are taken to be alike. Bytes per nanosecond are GB/s."""
    launches = max(1, kernel.launches)
    blocks = max(1, kernel.programs // launches)
    moved = _moved(kernel, needs, gpu, board) / launches
    reached = _reached(kernel, needs, blocks, gpu, board)
    spilled = 2.0 * (needs.stack or 0) * needs.warps * gpu.warp * blocks
    return Cost(
        launch=launches * board.launch_ns,
        memory=launches * moved / reached,
        arithmetic=_arithmetic_ns(kernel, board) * _imbalance(blocks, gpu),
        spills=launches * spilled / board.bandwidth_gb_s,
        starved=reached < board.bandwidth_gb_s,
    )


def _moved(kernel: Traffic, needs: Resources, gpu: Gpu, board: Board) -> float:
    """Bytes of all launches, those that a cache still holds counted as the fewer that take as long from memory."""
    blocks = max(1, kernel.programs // max(1, kernel.launches))
    resident = occupancy(needs, gpu)
    own = max(1, resident[0] // needs.warps) if resident else 1
    everywhere = min(blocks, own * gpu.multiprocessors)
    program = kernel.asked / max(1, kernel.programs)
    kept = board.first_kib * 1024
    if kept >= gpu.shared_total:  # shared memory is cut from that cache
        kept -= own * needs.shared
    all_fits = kernel.memory / max(1, kernel.launches) <= board.cache_kib * 1024

    def times(since: float) -> float:
        beside = min(since, program)
        if since <= 2 * program and own * beside <= kept:
            return board.first_times
        held = all_fits or max(since, everywhere * beside) <= board.cache_kib * 1024
        return board.cache_times if held else 1.0

    told = sum(kernel.again.values())
    long_ago = max(0, kernel.asked - kernel.memory - told) / times(math.inf)
    return kernel.memory + long_ago + sum(size / times(SECTOR << key) for key, size in kernel.again.items())


def _reached(kernel: Traffic, needs: Resources, blocks: int, gpu: Gpu, board: Board) -> float:
    """GB/s that the bytes in flight sustain."""
    resident = occupancy(needs, gpu)
    warps = resident[0] if resident else gpu.warps_max
    there = min(max(warps, needs.warps), -(-blocks // gpu.multiprocessors) * needs.warps)
    at_once = kernel.asked / max(1, kernel.accesses) / needs.warps
    in_flight = there * min(blocks, gpu.multiprocessors) * at_once
    return max(min(board.bandwidth_gb_s, in_flight / board.latency_ns), 1e-3)


def _arithmetic_ns(kernel: Traffic, board: Board) -> float:
    """1e12 operations a second are 1e3 a nanosecond."""
    plain = kernel.operations + kernel.special / board.special_share
    slowest = min(board.tflops.values())
    products = sum(2 * count / (_rate(board, kind) or slowest) for kind, count in kernel.products.items())
    return plain / (board.tops * 1e3) + products / 1e3


def _rate(board: Board, kind: str) -> float:
    """Of matrix units for operands of Triton's type ``kind``, e.g. ``fp16``, ``fp8e4nv``; 0 for one they lack."""
    return board.tflops.get("fp8" if kind.startswith("fp8") else kind, 0.0)


def _imbalance(blocks: int, gpu: Gpu) -> float:
    """Blocks of the busiest multiprocessor over the mean."""
    busiest = -(-blocks // gpu.multiprocessors)
    return busiest * gpu.multiprocessors / blocks


def _fill(name: str, calls: int, elements: int, board: Board) -> Cost:
    if name not in FILLS:
        raise NotModelled(f"library operator {name} ran besides, and what it costs is not known")
    written_ns = elements * ELEMENT_BYTES / board.bandwidth_gb_s
    return Cost(launch=calls * board.launch_ns, memory=written_ns, arithmetic=0.0, spills=0.0)


def _diagnosis(costs: Sequence[Cost]) -> Diagnosis:
    """By the largest term of the whole call."""
    memory = sum(each.memory for each in costs)
    terms = {
        Bound.LAUNCH: sum(each.launch for each in costs),
        Bound.MEMORY: memory,
        Bound.COMPUTE: sum(each.arithmetic for each in costs),
        Bound.OCCUPANCY: sum(each.spills for each in costs),
    }
    bound = max(terms, key=lambda name: terms[name])
    starved = sum(each.memory for each in costs if each.starved)
    if bound is Bound.MEMORY and starved * 2 > memory:
        bound = Bound.LATENCY
    told = tuple(
        Entry(name=f"modelled_{name}_ns", value=f"{value:.0f}")
        for name, value in (
            ("launch", terms[Bound.LAUNCH]),
            ("memory", memory),
            ("arithmetic", terms[Bound.COMPUTE]),
            ("spill", terms[Bound.OCCUPANCY]),
        )
    )
    return Diagnosis(bound=bound, evidence=told, summary=SUMMARIES[bound])


def _library(seen: Seen | None) -> Sequence[tuple[str, tuple[int, int, int]]]:
    return list(seen.library.items()) if seen else []


def _resources(kernel: Traffic, report: Report) -> Resources:
    """Of the variant with as many blocks, or of the one that takes most."""
    known = [each for each in report.kernels if each.name == kernel.name]
    if not known:
        raise NotModelled(f"the compiler told nothing of kernel {kernel.name}")
    blocks = kernel.programs // max(1, kernel.launches)
    alike = [each for each in known if each.blocks == blocks]
    return max(alike or known, key=lambda each: (each.stack or 0, each.registers or 0, each.shared))


def _counts(kernels: Sequence[Traffic]) -> tuple[Count, ...]:
    facts = {
        "launches": sum(each.launches for each in kernels),
        "programs": sum(each.programs for each in kernels),
        "bytes_touched": sum(each.memory for each in kernels),
        "bytes_asked": sum(each.asked for each in kernels),
        "operations": sum(each.operations for each in kernels),
        "special_operations": sum(each.special for each in kernels),
        "matrix_multiply_adds": sum(sum(each.products.values()) for each in kernels),
    }
    return tuple(Count(name=name, value=value) for name, value in facts.items())


def _kernel(name: Any, said: Any) -> Traffic:
    if not isinstance(name, str):
        raise TypeError("a name that is no text")
    numbers = ("launches", "programs", "asked", "memory", "accesses", "operations", "special")
    again = {int(key): _count(size) for key, size in list(dict(said["again"]).items())[:DISTANCES_MAX]}
    if any(not 0 <= key <= DISTANCES_MAX for key in again):
        raise ValueError("no distance")
    products = {str(kind)[:16]: _count(count) for kind, count in list(dict(said["products"]).items())[:KERNELS_MAX]}
    return Traffic(
        name="".join(c if c.isprintable() else "?" for c in name[:48]),
        products=products,
        again=again,
        **{number: _count(said[number]) for number in numbers},
    )


def _count(said: Any) -> int:
    if type(said) is not int or not 0 <= said < 1 << 55:
        raise ValueError("no count")
    return said
