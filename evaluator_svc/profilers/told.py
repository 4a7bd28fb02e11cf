"""The diagnosis of a profiled call (pure): the class, and the numbers that it rests on."""

from __future__ import annotations

from evaluator_svc.profilers.bottleneck import EXCESS, decide
from evaluator_svc.profilers.call import Call
from evaluator_svc.profilers.counters import Counters
from shared.events import Bound, Diagnosis, Entry

STALLS_SHOWN = 4
TAIL_WAVES, TAIL_PART = 5, 0.5
"""A last wave that is less than half full matters where there are few waves (evaluation.md §4.3, "tail")."""
SECTORS = 0.6
"""Less than this of what is moved is asked for: the accesses of a warp are scattered."""


def diagnosis(call: Call, tool: str) -> Diagnosis:
    """``tool``: how it was counted, for the record. ``bound`` is UNKNOWN where no rule decided."""
    answer = decide(call)
    found = answer.found
    evidence = [_entry("counted_by", tool)]
    if call.kernels:
        evidence += [*_time(call), *_memory(call), *_compute(call.main), *_residence(call.main), *_notes(call.main)]
    if found is not None:
        evidence.append(_entry("rule", found.rule))
    if answer.missing:
        evidence.append(_entry("not_told", ", ".join(answer.missing)))
    return Diagnosis(
        bound=Bound.UNKNOWN if found is None else found.bound,
        evidence=tuple(evidence),
        summary="the counters that were told decide nothing" if found is None else found.says,
    )


def _time(call: Call) -> list[Entry]:
    main, total, count = call.main, call.kernels_ns, len(call.kernels)
    launches = f"{count} launch{'es' * (count > 1)}" + ("" if call.complete else " and more")
    parts = [launches]
    if total is not None:
        parts.append(f"{total / 1000:.1f} µs on the device")
    if call.measured_ns > 0:
        parts.append(f"{call.measured_ns / 1000:.1f} µs a call by the clock of record")
    if main.duration_ns is not None and total and count > 1:
        parts.append(f"{main.kernel} takes {main.duration_ns / total:.0%} of it")
    entries = [_entry("launches", ", ".join(parts)), _entry("kernel", main.kernel)]
    floor = call.floors.floor_ns
    if floor > 0 and call.measured_ns > 0:
        says = f"{floor / call.measured_ns:.0%}: the floor is {floor / 1000:.1f} µs"
        entries.append(_entry("speed_of_light", says))
    return entries


def _memory(call: Call) -> list[Entry]:
    main, moved, parts = call.main, call.dram_bytes, []
    if main.dram_share is not None:
        parts.append(f"{main.dram_share:.0%} of the peak rate")
    if main.dram_read_bytes is not None and main.dram_written_bytes is not None:
        parts.append(f"{_mb(main.dram_read_bytes)} read, {_mb(main.dram_written_bytes)} written")
    if moved is not None and call.bytes_min > 0:
        times = moved / call.bytes_min
        waste = ", waste" if times > EXCESS else ""
        parts.append(f"the call moves {times:.2f} times what it must{waste}")
    entries = [_entry("dram", ", ".join(parts))] if parts else []
    caches = (("l2", main.l2_share, main.l2_hit), ("l1_shared", main.l1_share, main.l1_hit))
    for name, share, hit in caches:
        said = [] if share is None else [f"{share:.0%} of the peak rate"]
        said += [] if hit is None else [f"{hit:.0%} of the sectors hit"]
        entries += [_entry(name, ", ".join(said))] if said else []
    return entries


def _compute(main: Counters) -> list[Entry]:
    names = {
        "multiprocessors": main.compute_share, "tensor cores": main.tensor_share, "multiply-add": main.fma_share,
        "integer and logic": main.alu_share, "special functions": main.special_share, "float64": main.double_share,
        "issue": main.issue_share,
    }  # fmt: skip
    told = ", ".join(f"{name} {share:.0%}" for name, share in names.items() if share is not None)
    return [_entry("compute", told)] if told else []


def _residence(main: Counters) -> list[Entry]:
    entries = []
    parts = [] if main.occupancy is None else [f"{main.occupancy:.0%} of the warps that fit are resident"]
    parts += [] if main.occupancy_possible is None else [f"{main.occupancy_possible:.0%} possible"]
    parts += [] if main.occupancy_limiter is None else [f"limited by {main.occupancy_limiter}"]
    parts += [] if main.registers is None else [f"{main.registers:.0f} registers a thread"]
    parts += [] if main.shared_bytes is None else [f"{main.shared_bytes:.0f} bytes of shared memory a block"]
    if parts:
        entries.append(_entry("occupancy", ", ".join(parts)))
    parts = [] if main.blocks is None else [f"{main.blocks:.0f} blocks"]
    parts += [] if main.threads is None else [f"{main.threads:.0f} threads a block"]
    parts += [] if main.waves is None else [f"{main.waves:.2f} waves"]
    if parts:
        entries.append(_entry("grid", ", ".join(parts)))
    if main.stalls:
        shown = ", ".join(f"{stall.reason} {stall.share:.0%}" for stall in main.stalls[:STALLS_SHOWN])
        entries.append(_entry("stalls", shown))
    return entries


def _notes(main: Counters) -> list[Entry]:
    """What is worth a line whatever bounds the kernel (evaluation.md §4.3, last lines; §4.1, "coalescing")."""
    entries = []
    if main.spilled is not None:
        how = "reserved a thread" if main.scratch_bytes is not None else "moved"
        entries.append(_entry("spills", f"{main.spilled:.0f} bytes {how}" if main.spilled else "0"))
    if main.waves is not None and 1 < main.waves < TAIL_WAVES:
        whole, part = divmod(main.waves, 1)
        if 0 < part < TAIL_PART:
            entries.append(_entry("tail", f"the last of {whole + 1:.0f} waves fills {part:.0%} of the chip"))
    for name, used in (("scattered_loads", main.load_use), ("scattered_stores", main.store_use)):
        if used is not None and 0 < used < SECTORS:
            entries.append(_entry(name, f"{used:.0%} of the bytes moved are used"))
    if main.bank_conflicts:
        entries.append(_entry("bank_conflicts", f"{main.bank_conflicts:.0%} of the accesses to shared memory"))
    return entries


def _mb(bytes_: float) -> str:
    return f"{bytes_ / 1e6:.1f} MB"


def _entry(name: str, value: object) -> Entry:
    return Entry(name=name, value=str(value))
