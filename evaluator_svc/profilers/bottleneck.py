"""From a profiler's counters to what bounds a call (pure): a list of rules, of which the first that applies decides.

The tree is evaluation.md §4.3, in its order but for one: a grid that fills less than one wave is asked about only after
the rates, because a persistent kernel does that on purpose. A rule whose counters are not told is *not taken*, and says
which those are; so any set of counters has an answer, which may be ``unknown``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaluator_svc.profilers.advice import BUSY, PIPES, WAITS
from evaluator_svc.profilers.call import Call
from evaluator_svc.profilers.counters import Counters
from shared.events import Bound

HOST = 1.3
"""A call that takes this many times what its kernels take is bound by launching them."""
FULL = 0.75
"""A memory unit at this share of its peak is what limits."""
NOT_FULL = 0.6
"""The second-level cache limits only where memory behind it is at less than this."""
CONFLICTS = 0.1
PIPE, ISSUE = 0.7, 0.8
EXCESS = 1.3
"""Traffic of so many times what must be moved is waste. All of §4.3."""
FEW_WARPS = 0.3
"""Ours: with less of its warps resident a multiprocessor has too few to switch to, whatever they wait for."""
ON_TENSOR_CORES = 0.4
"""Ours: a kernel that uses these so much hides latencies by stages within few warps, as it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """``rule``: its name, for the record. ``says``: one line that ends in what to try."""

    bound: Bound
    rule: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """The rule was not taken: these are not told."""

    counters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``found`` is None where nothing was decided; ``missing`` holds what rules before it lacked, each once."""

    found: Found | None
    missing: tuple[str, ...] = ()


Rule = Callable[[Call], Found | Missing | None]


def decide(call: Call) -> Answer:
    """What bounds ``call``, and which counters nobody could be asked about on the way."""
    missing: list[str] = []
    if not call.kernels:
        return Answer(found=None, missing=("launches",))
    for rule in RULES:
        said = rule(call)
        if isinstance(said, Found):
            return Answer(found=said, missing=tuple(dict.fromkeys(missing)))
        if isinstance(said, Missing):
            missing += said.counters
    return Answer(found=None, missing=tuple(dict.fromkeys(missing)))


def host(call: Call) -> Found | Missing | None:
    """Launching takes longer than what is launched: evaluation.md §4.3, first line (``t_host > 1.3 t_gpu_span``)."""
    spent = call.kernels_ns
    if spent is None or call.measured_ns <= 0:
        return Missing(counters=("duration_ns",) if spent is None else ("measured_ns",))
    if call.measured_ns <= HOST * spent:
        return None
    count = len(call.kernels)
    many = f"its {count} launches take" if count > 1 else "its launch takes"
    advice = "one fused kernel" if count > 1 else "less work on the host before the launch"
    return Found(
        bound=Bound.LAUNCH,
        rule="host",
        says=f"launch-bound: of {_us(call.measured_ns)} a call {many} {_us(spent)} on the device; {advice}",
    )


def few_blocks(call: Call) -> Found | Missing | None:
    """Fewer blocks than multiprocessors: evaluation.md §4.3 (``grid < SMs``); Nsight Compute's rule "Launch
    Statistics: small grid".
    """
    main = call.main
    if main.blocks is None or main.multiprocessors is None:
        return _missing(main, "blocks", "multiprocessors")
    if main.blocks >= main.multiprocessors:
        return None
    return Found(
        bound=Bound.OCCUPANCY,
        rule="few_blocks",
        says=(
            f"too few blocks: {main.blocks:.0f} for {main.multiprocessors:.0f} multiprocessors; smaller tiles, or the "
            "reduction split over more blocks"
        ),
    )


def dram(call: Call) -> Found | Missing | None:
    """Memory at 75 % of its peak: evaluation.md §4.3 (``dram% >= 75``; traffic of 1.3 times the least is waste)."""
    main = call.main
    if main.dram_share is None:
        return _missing(main, "dram_share")
    if main.dram_share < FULL:
        return None
    moved = call.dram_bytes
    times = moved / call.bytes_min if moved is not None and call.bytes_min > 0 else None
    advice = "less precision in storage or fusion with neighbours is what is left"
    if times is not None and times > EXCESS:
        advice = f"it moves {times:.1f} times what it must: fewer passes, fusion, tiles that fit the cache"
    return Found(
        bound=Bound.MEMORY,
        rule="dram",
        says=f"memory-bound: {main.dram_share:.0%} of the memory's peak rate; {advice}",
    )


def second_level(call: Call) -> Found | Missing | None:
    """The second-level cache at 75 %, memory behind it at less than 60 %: evaluation.md §4.3."""
    main = call.main
    if main.l2_share is None or main.dram_share is None:
        return _missing(main, "l2_share", "dram_share")
    if main.l2_share < FULL or main.dram_share >= NOT_FULL:
        return None
    return Found(
        bound=Bound.MEMORY,
        rule="second_level",
        says=(
            f"bound by the second-level cache ({main.l2_share:.0%} of its peak, memory {main.dram_share:.0%}); larger "
            "tiles in shared memory or registers, accesses that use whole sectors"
        ),
    )


def first_level(call: Call) -> Found | Missing | None:
    """The first-level cache at 75 %: evaluation.md §4.3 (``l1/shared% >= 75``)."""
    main = call.main
    if main.l1_share is None:
        return _missing(main, "l1_share")
    if main.l1_share < FULL:
        return None
    return Found(
        bound=Bound.MEMORY,
        rule="first_level",
        says=(
            f"bound by the first-level cache and shared memory ({main.l1_share:.0%} of their peak); more in registers, "
            "wider accesses"
        ),
    )


def pipes(call: Call) -> Found | Missing | None:
    """A pipe at 70 %: evaluation.md §4.3 (``tensor% >= 70 / fp% >= 70``)."""
    main = call.main
    told = {field: share for field in PIPES if (share := getattr(main, field)) is not None}
    if told:
        busiest = max(told, key=lambda field: told[field])
        if told[busiest] >= PIPE:
            what, advice = PIPES[busiest]
            said = f"compute-bound: {what} at {told[busiest]:.0%} of the peak; {advice}"
            return Found(bound=Bound.COMPUTE, rule=busiest.removesuffix("_share"), says=said)
    return _missing(main, *PIPES) if len(told) < len(PIPES) else None


def issue(call: Call) -> Found | Missing | None:
    """Instructions issued in 80 % of the cycles: evaluation.md §4.3 (``issue_active >= 80``)."""
    main = call.main
    if main.issue_share is None:
        return _missing(main, "issue_share")
    if main.issue_share < ISSUE:
        return None
    return Found(
        bound=Bound.COMPUTE,
        rule="issue",
        says=(
            f"compute-bound: instructions are issued in {main.issue_share:.0%} of the cycles; fewer instructions an "
            "element: wider accesses, cheaper addresses, less redundant work"
        ),
    )


def conflicts(call: Call) -> Found | Missing | None:
    """A tenth of the accesses to shared memory by conflicts alone: evaluation.md §4.3 (``bank_conflict_ratio > 0.1``),
    asked only of a first-level cache that is busy for half of the time, which the tree leaves open.
    """
    main = call.main
    if main.bank_conflicts is None or main.l1_share is None:
        return _missing(main, "bank_conflicts", "l1_share")
    if main.bank_conflicts <= CONFLICTS or main.l1_share < FULL / 2:
        return None
    return Found(
        bound=Bound.MEMORY,
        rule="bank_conflicts",
        says=(
            f"shared memory: {main.bank_conflicts:.0%} of its accesses are there by bank conflicts alone; another "
            "layout (padding, swizzling)"
        ),
    )


def part_of_a_wave(call: Call) -> Found | Missing | None:
    """Less than one wave of blocks, and no unit near its peak: evaluation.md §4.3 (``waves_per_sm < 1``)."""
    main = call.main
    if main.waves is None:
        return _missing(main, "waves")
    if main.waves >= 1:
        return None
    return Found(
        bound=Bound.OCCUPANCY,
        rule="part_of_a_wave",
        says=(
            f"too little parallel work: {main.waves:.2f} of the blocks that fit on the chip at once; smaller tiles, or "
            "the reduction split over more blocks"
        ),
    )


def latency(call: Call) -> Found | Missing | None:
    """None of the rates is near its peak, so warps wait: evaluation.md §4.3 (last branch: spills, what limits
    occupancy, then the largest stall by Nsight Compute's Kernel Profiling Guide, "Warp State").

    It takes a rate of memory and one of arithmetic to say so.
    """
    main = call.main
    arithmetic = (main.compute_share, main.issue_share, main.alu_share)
    if main.dram_share is None or all(share is None for share in arithmetic):
        return _missing(main, "dram_share", "compute_share")
    if main.spilled:
        return Found(
            bound=Bound.OCCUPANCY,
            rule="spills",
            says="short of registers: some live in memory (spills); smaller tiles, more warps a block, fewer stages",
        )
    if main.occupancy is not None and main.occupancy < FEW_WARPS and (main.tensor_share or 0.0) < ON_TENSOR_CORES:
        limiter = f", limited by {main.occupancy_limiter}" if main.occupancy_limiter else ""
        return Found(
            bound=Bound.OCCUPANCY,
            rule="few_warps",
            says=(
                f"too few warps to hide latencies: {main.occupancy:.0%} of what fits{limiter}; smaller tiles or fewer "
                "stages, or more independent work in each warp"
            ),
        )
    waits = [stall for stall in main.stalls if stall.reason not in BUSY]
    if not waits:
        return Found(
            bound=Bound.LATENCY,
            rule="latency",
            says="latency-bound: no unit is near its peak; what warps wait for is not told",
        )
    top = waits[0]
    advice = WAITS.get(top.reason, f"by the reason {top.reason}")
    return Found(
        bound=Bound.LATENCY,
        rule=f"stall_{top.reason}",
        says=f"latency-bound: warps wait {top.share:.0%} of the time {advice}",
    )


RULES: tuple[Rule, ...] = (
    host, few_blocks, dram, second_level, first_level, pipes, issue, conflicts, part_of_a_wave, latency,
)  # fmt: skip


def _missing(main: Counters, *fields: str) -> Missing:
    return Missing(counters=tuple(field for field in fields if getattr(main, field) is None))


def _us(ns: float) -> str:
    return f"{ns / 1000:.1f} µs"
