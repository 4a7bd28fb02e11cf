"""The decisions of a plan in CUDA and HIP (pure).

Defaults are for operands that fill the chip: 16 elements a thread, several 16-byte loads in flight, a block for every
tile of work.
"""

from __future__ import annotations

from math import prod

from shared.chips import Gpu
from shared.events import Bound
from synthesizer_svc.schedule.emit.algorithms import algorithms
from synthesizer_svc.schedule.emit.cuda.shape import AGAIN, HELD, HELD_MAX, widths
from synthesizer_svc.schedule.emit.cuda.supported import check
from synthesizer_svc.schedule.emit.triton import split
from synthesizer_svc.schedule.emit.triton.layout import layout_of
from synthesizer_svc.schedule.emit.triton.merge import merged
from synthesizer_svc.schedule.emit.triton.types import blocks, power_of_two
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.schedule import Decision, Schedule, Space, Value

PER_THREAD, LONG_PER_THREAD, LONG = 16, 32, 1 << 13
"""Elements of one thread; of rows that are longer than ``LONG``."""
BLOCK = 256
UNROLLS = (1, 2, 4, 8)


def space(plan: Plan, gpu: Gpu) -> Space:
    """All decisions of ``plan``.

    Raises:
        Unsupported: something in it is not written here.
    """
    check(plan)
    plan = merged(plan)
    found: list[Decision] = []
    for group in plan.groups:
        found += decisions(plan, group, gpu)
        parts = split.decision(plan, group, gpu) if any(s.kind == "reduce" for s in group.stages) else None
        found += [parts] if parts is not None else []
    return Space(decisions=tuple(found))


def prepared(plan: Plan, schedule: Schedule) -> Plan:
    """``plan`` under ``schedule``: folds over the same elements together, long ones in parts."""
    plan = merged(plan)
    for group in plan.groups:
        parts = int(schedule.get(f"{group.name}.split") or 1)
        if parts > 1 and split.fits(plan, group, parts):
            plan = split.split(plan, group, parts)
    return plan


def decisions(plan: Plan, group: Group, gpu: Gpu) -> list[Decision]:
    """Those about the kernel of one group."""
    possible = widths(plan, group)
    width = _width(plan, group, possible)
    if layout_of(group).inner:
        return [*_folded(group, gpu, possible, width), *algorithms(group)]
    return _elements(group, gpu, possible, width)


def _width(plan: Plan, group: Group, possible: tuple[int, ...]) -> int:
    """Neighbours that fill an access of the widest elements: more would take two of these."""
    sizes = [plan.buffer(load.attr[0]).dtype.itemsize for load in group.loads()]
    sizes += [plan.buffer(w.buffer).dtype.itemsize for s in group.stages for w in s.writes if w is not None]
    return max(w for w in possible if w == 1 or w * min(sizes) <= 16)


def _elements(group: Group, gpu: Gpu, possible: tuple[int, ...], width: int) -> list[Decision]:
    units = max(1, group.rows // width)
    unroll = max(u for u in UNROLLS if u == 1 or (u * width <= PER_THREAD and units >= u * BLOCK * gpu.multiprocessors))
    return [
        *_width_decision(group, possible, width),
        _decision(
            group,
            "unroll",
            UNROLLS,
            unroll,
            (Bound.LATENCY, Bound.MEMORY),
            "more loads of a thread in flight, against fewer threads and more registers",
        ),
        _threads(group, (128, 256, 512, 1024), BLOCK),
        *_programs(group, blocks(units, BLOCK * unroll), gpu),
    ]


def _folded(group: Group, gpu: Gpu, possible: tuple[int, ...], width: int) -> list[Decision]:
    inner = list(dict.fromkeys(s.inner for s in group.stages if s.inner))
    longest = max(prod(a.extent for a in axes) for axes in inner)
    layout = layout_of(group)
    if layout.across:
        threads = min(8, power_of_two(longest))
        rows = gpu.warp
    else:
        each = PER_THREAD if longest <= LONG else LONG_PER_THREAD
        threads = min(gpu.threads_max, power_of_two(blocks(longest, max(each, width))))
        rows = max(1, gpu.warp * 4 // threads)
    most = power_of_two(blocks(longest, width))
    holds = len(inner) == 1 and blocks(longest, min(most, gpu.threads_max) * width) * width <= HELD_MAX
    ladder = [1 << n for n in range(11)]
    return [
        *_width_decision(group, possible, width),
        _threads(
            group, tuple(t for t in ladder if threads // 4 <= t <= min(threads * 4, most, gpu.threads_max)), threads
        ),
        _decision(
            group,
            "rows",
            tuple(r for r in ladder if rows // 4 <= r <= rows * 4 and r * threads <= gpu.threads_max),
            rows,
            (Bound.LATENCY, Bound.OCCUPANCY),
            "rows of a block; short rows need several of them to fill one",
        ),
        _decision(
            group,
            "row",
            (HELD, AGAIN) if holds else (AGAIN,),
            HELD if holds else AGAIN,
            (Bound.MEMORY, Bound.OCCUPANCY),
            "a row kept in registers is read once; one read in every pass needs few registers",
        ),
        _decision(
            group,
            "unroll",
            UNROLLS,
            4,
            (Bound.LATENCY, Bound.MEMORY),
            "more loads of a thread in flight, where a row is read in every pass",
        ),
        *_programs(group, blocks(group.rows, rows), gpu),
    ]


def _width_decision(group: Group, possible: tuple[int, ...], width: int) -> list[Decision]:
    if len(possible) == 1:
        return []
    why = "neighbours that a thread reads and writes together: fewer, wider accesses against fewer threads"
    return [_decision(group, "width", possible, width, (Bound.MEMORY, Bound.LATENCY), why)]


def _threads(group: Group, values: tuple[int, ...], default: int) -> Decision:
    why = "more threads hold fewer elements each: fewer registers and shorter loops against longer joins"
    return _decision(group, "threads", values, default, (Bound.LATENCY, Bound.OCCUPANCY, Bound.MEMORY), why)


def _programs(group: Group, tiles: int, gpu: Gpu) -> list[Decision]:
    if tiles < 2 * gpu.multiprocessors:
        return []
    why = "so many blocks a multiprocessor go through all tiles; 0 is a block for each tile"
    return [_decision(group, "programs", (0, 1, 2, 4, 8), 0, (Bound.LATENCY, Bound.MEMORY, Bound.LAUNCH), why)]


def _decision(
    group: Group, name: str, values: tuple[Value, ...], default: Value, pays: tuple[Bound, ...], why: str
) -> Decision:
    return Decision(group=group.name, name=name, values=values, default=default, pays_when=pays, why=why)
