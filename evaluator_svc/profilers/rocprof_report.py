"""What ``rocprofv3`` wrote, as counters (pure): CSV with a line per launch and counter, or JSON.

Written after AMD's documentation ("Using rocprofv3", output file fields and JSON schema; "MI200 and MI300 performance
counters and metrics") and never run on a card: the tests' samples were made up in that form.

One run counts one group of counters, so the launches of several runs are put together by kernel and by how many times
it was launched before. A counter that a run did not write is not told: the tool leaves out what a chip lacks without an
error.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluator_svc.profilers.counters import Counters, added, named
from evaluator_svc.resources import Resources, occupancy
from shared.chips import Gpu

GROUPS = (
    ("FETCH_SIZE",), ("WRITE_SIZE",), ("L2CacheHit",), ("MemUnitBusy",), ("VALUBusy",), ("MfmaUtil",),
    ("LDSBankConflict",), ("OccupancyPercent",),
)  # fmt: skip
"""Counters of one run each. Derived ones fill a chip's slots alone on some chips ("Request exceeds the capabilities of
the hardware to collect"), and reads and writes of memory never fit together."""
SUMMED = ("FETCH_SIZE", "WRITE_SIZE")
"""Told by instance in some versions; the others are shares, which have no sum."""
KIB, PER_CENT = 1024, 100
LAUNCHES_MAX = 4096
_COLUMNS = {
    "Grid_Size": "items", "Workgroup_Size": "threads", "LDS_Block_Size": "shared", "Scratch_Size": "scratch",
    "VGPR_Count": "registers", "Accum_VGPR_Count": "accumulators", "Start_Timestamp": "begin_ns",
    "End_Timestamp": "end_ns",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One dispatch in one run, or in several that were put together. ``items``: work-items of the whole grid."""

    kernel: str
    items: float | None = None
    threads: float | None = None
    shared: float | None = None
    scratch: float | None = None
    registers: float | None = None
    accumulators: float | None = None
    begin_ns: float | None = None
    end_ns: float | None = None
    counted: Mapping[str, float] = field(default_factory=dict)

    @property
    def duration_ns(self) -> float | None:
        """As the first run that was put together shows it."""
        return None if self.begin_ns is None or self.end_ns is None else max(0.0, self.end_ns - self.begin_ns)


def from_csv(text: str) -> tuple[Launch, ...]:
    """The launches of ``*_counter_collection.csv`` in their order; none when it is not of that form."""
    found: dict[str, Launch] = {}
    try:
        for row in csv.DictReader(text.splitlines()):
            identity, kernel, name = row.get("Dispatch_Id"), row.get("Kernel_Name"), row.get("Counter_Name")
            if not identity or not kernel or not name or len(found) >= LAUNCHES_MAX:
                continue
            at = f"{row.get('Process_Id')} {identity}"
            if at not in found:
                told = {to: _number(row.get(column)) for column, to in _COLUMNS.items()}
                found[at] = Launch(kernel=kernel, **told)  # type: ignore[arg-type]
            found[at] = _with(found[at], name, _number(row.get("Counter_Value")))
    except csv.Error:
        return ()
    return tuple(found.values())


def from_json(text: str) -> tuple[Launch, ...]:
    """The launches of ``*_results.json``; none when it is not of that form."""
    try:
        said = json.loads(text)["rocprofiler-sdk-tool"][0]
        names = {counter["id"]["handle"]: str(counter["name"]) for counter in said["counters"]}
        symbols = {symbol["kernel_id"]: symbol for symbol in said["kernel_symbols"]}
        times = {
            record["correlation_id"]["internal"]: (record["start_timestamp"], record["end_timestamp"])
            for record in said.get("buffer_records", {}).get("kernel_dispatch", ())
        }
        records = said["callback_records"]["counter_collection"][:LAUNCHES_MAX]
        return tuple(_launch(record, names, symbols, times) for record in records)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return ()


def together(runs: Sequence[Sequence[Launch]]) -> tuple[Launch, ...]:
    """The launches of the first run that has any, with what other runs counted of the same ones.

    The same: of one kernel, and launched after as many of it. What two runs tell differently is as the first has it.
    """
    first = next((run for run in runs if run), ())
    others = [_numbered(run) for run in runs]
    made = []
    for key, launch in _numbered(first).items():
        counted: dict[str, float] = {}
        for run in reversed(others):
            if key in run:
                counted |= run[key].counted
        made.append(replace(launch, counted=counted))
    return tuple(made)


def last_of_each(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """The last launch of every kernel: those before it warmed up. A call that launches one kernel several times is
    told of once.
    """
    return tuple({launch.kernel: launch for launch in launches}.values())


def counters(launch: Launch, gpu: Gpu, bandwidth: float | None) -> Counters:
    """``bandwidth`` of memory in bytes/s: the tool tells bytes, and no share of a peak.

    ``FETCH_SIZE`` and ``WRITE_SIZE`` are in KiB, shares in per cent of the launch's time.
    """
    read, written = (launch.counted.get(name) for name in SUMMED)
    read_bytes, written_bytes = (None if kib is None else kib * KIB for kib in (read, written))
    moved, spent = added(read_bytes, written_bytes), launch.duration_ns
    share = moved / (spent * 1e-9) / bandwidth if moved is not None and spent and bandwidth else None
    blocks = launch.items / launch.threads if launch.items is not None and launch.threads else None
    registers = launch.registers if launch.accumulators is None else added(launch.registers, launch.accumulators)
    resident = _resident(launch, gpu, registers)
    warps, limiter, of_block = resident or (None, None, None)
    waves = None
    if blocks is not None and warps and of_block:
        waves = blocks / (gpu.multiprocessors * (warps // of_block))
    return Counters(
        kernel=named(launch.kernel),
        duration_ns=spent,
        blocks=blocks,
        threads=launch.threads,
        multiprocessors=gpu.multiprocessors,
        waves=waves,
        dram_read_bytes=read_bytes,
        dram_written_bytes=written_bytes,
        dram_share=share,
        l2_hit=_share(launch, "L2CacheHit"),
        l1_share=_share(launch, "MemUnitBusy"),
        bank_conflicts=_share(launch, "LDSBankConflict"),
        alu_share=_share(launch, "VALUBusy"),
        tensor_share=_share(launch, "MfmaUtil"),
        occupancy=_share(launch, "OccupancyPercent"),
        occupancy_possible=None if warps is None else warps / gpu.warps_max,
        occupancy_limiter=limiter,
        registers=registers,
        shared_bytes=launch.shared,
        scratch_bytes=launch.scratch,
    )


def _resident(launch: Launch, gpu: Gpu, registers: float | None) -> tuple[int, str, int] | None:
    """Wavefronts on a compute unit, what limits them, and those of one workgroup; by the vendor's arithmetic."""
    if registers is None or launch.shared is None or not launch.threads:
        return None
    of_block = math.ceil(launch.threads / gpu.warp)
    needs = Resources(
        name="", blocks=1, warps=of_block, shared=int(launch.shared), registers=int(registers), stack=None
    )
    found = occupancy(needs, gpu)
    return None if found is None else (*found, of_block)


def _launch(
    record: Mapping[str, Any], names: Mapping[Any, str], symbols: Mapping[Any, Any], times: Mapping[Any, Any]
) -> Launch:
    data = record["dispatch_data"]
    info = data["dispatch_info"]
    symbol = symbols[info["kernel_id"]]
    begin, end = times.get(data["correlation_id"]["internal"]) or (
        data.get("start_timestamp"),
        data.get("end_timestamp"),
    )
    launch = Launch(
        kernel=str(symbol["formatted_kernel_name"]),
        items=_product(info["grid_size"]),
        threads=_product(info["workgroup_size"]),
        shared=_number(record.get("lds_block_size_v")),
        scratch=_number(symbol.get("private_segment_size")),
        registers=_number(record.get("arch_vgpr_count")),
        accumulators=_number(record.get("accum_vgpr_count")),
        begin_ns=_number(begin),
        end_ns=_number(end),
    )
    for one in record["records"]:
        launch = _with(launch, names[one["counter_id"]["handle"]], _number(one["value"]))
    return launch


def _product(extent: Mapping[str, Any]) -> float | None:
    sides = [_number(extent.get(axis)) for axis in "xyz"]
    told = [side for side in sides if side is not None]
    return math.prod(told) if len(told) == len(sides) else None


def _with(launch: Launch, name: str, value: float | None) -> Launch:
    if value is None:
        return launch
    before = launch.counted.get(name, 0.0) if name in SUMMED else 0.0
    return replace(launch, counted={**launch.counted, name: before + value})


def _numbered(run: Sequence[Launch]) -> dict[tuple[str, int], Launch]:
    seen: dict[str, int] = {}
    found = {}
    for launch in run:
        turn = seen[launch.kernel] = seen.get(launch.kernel, -1) + 1
        found[launch.kernel, turn] = launch
    return found


def _share(launch: Launch, name: str) -> float | None:
    value = launch.counted.get(name)
    return None if value is None else value / PER_CENT


def _number(said: Any) -> float | None:
    """What is no finite number from 0 on is not told."""
    try:
        value = float(said)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) and value >= 0 else None
