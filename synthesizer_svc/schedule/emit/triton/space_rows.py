"""Decisions of groups that are no matrix products (pure).

Defaults are for operands that fill the chip: 16 elements a thread, so that several 16-byte loads are in flight, and as
many programs as there are tiles.
"""

from __future__ import annotations

from dataclasses import replace

from shared.chips import Gpu
from shared.events import Bound
from synthesizer_svc.schedule.emit.algorithms import algorithms
from synthesizer_svc.schedule.emit.triton.layout import Layout, layout_of
from synthesizer_svc.schedule.emit.triton.tiles import LOOP, PER_THREAD_MAX, WHOLE, WHOLE_MAX
from synthesizer_svc.schedule.emit.triton.types import blocks, power_of_two
from synthesizer_svc.schedule.ir import Group
from synthesizer_svc.schedule.schedule import Decision, Value
from synthesizer_svc.schedule.stages import CHUNKED, STATISTICS, expanded, passes

PER_THREAD = 16
WIDE_PER_THREAD = 32
"""Of rows that need more than eight warps at the usual number."""
TILE = 4096
WHOLE_DEFAULT_MAX = 1 << 14
TRANSPOSED = 64
LONG_ROW, LONG_CHUNK = 1 << 15, 1 << 14
"""Rows longer than that are read several times from the cache: few large programs, so that their rows fit in there."""
UNROLLED_MAX = 32
"""Elements of a row that are folded one by one, with neighbouring rows along the tile."""


def decisions(group: Group, gpu: Gpu) -> list[Decision]:
    """All decisions of ``group``."""
    layout = layout_of(group, ones=True)
    found = _folded(group, layout, gpu) if layout.inner else _elements(group, layout, gpu)
    return [*found, *(_with_chunks(each) if each.name == STATISTICS else each for each in algorithms(group))]


def _with_chunks(decision: Decision) -> Decision:
    return replace(
        decision,
        values=(decision.values[0], CHUNKED, *decision.values[1:]),
        why=f"{decision.why}; a maximum for each chunk needs fewer, and waits for all lanes",
    )


def _decision(
    group: Group, name: str, values: tuple[Value, ...], default: Value, pays: tuple[Bound, ...], why: str
) -> Decision:
    return Decision(group=group.name, name=name, values=values, default=default, pays_when=pays, why=why)


def around(default: int, low: int, high: int, factor: int = 4) -> tuple[int, ...]:
    """Powers of two within ``factor`` of ``default`` and within the limits."""
    return tuple(
        v for v in (1 << n for n in range(21)) if low <= v <= high and default // factor <= v <= default * factor
    )


def _warps(group: Group, elements: int, gpu: Gpu, *, long: bool = False) -> Decision:
    """``long``: of rows in chunks that few programs share the cache for, so that one has all the warps it can."""
    most = gpu.threads_max // gpu.warp
    each = PER_THREAD if elements <= TILE or long else WIDE_PER_THREAD
    default = max(1, min(most, power_of_two(elements // (gpu.warp * each))))
    return _decision(
        group,
        "warps",
        around(default, 1, most),
        default,
        (Bound.LATENCY, Bound.OCCUPANCY, Bound.MEMORY),
        "more warps hold fewer elements each: fewer registers and shorter folds against more work in flight",
    )


def _programs(group: Group, tiles: int, gpu: Gpu) -> list[Decision]:
    if tiles < 2 * gpu.multiprocessors:
        return []
    return [
        _decision(
            group,
            "programs",
            (0, 1, 2, 4, 8),
            0,
            (Bound.LATENCY, Bound.MEMORY, Bound.LAUNCH),
            "so many programs a multiprocessor go through all tiles and keep what rows share; 0 is one a tile",
        )
    ]


def _cache(group: Group, values: tuple[str, ...], default: str) -> Decision:
    return _decision(
        group,
        "cache",
        values,
        default,
        (Bound.MEMORY,),
        "streamed data leaves the cache first; kept data of a row is there again for the next pass over it",
    )


def _elements(group: Group, layout: Layout, gpu: Gpu) -> list[Decision]:
    """Of a group without folds: tile sizes, warps, persistence."""
    width = power_of_two(layout.column_count)
    if layout.across:
        rows, columns = TRANSPOSED, min(TRANSPOSED, width)
    else:
        columns = _least_waste(layout.column_count, min(TILE, width))
        rows = 1 if columns >= TILE // 4 else TILE // columns
    rows = min(rows, power_of_two(layout.row_count))
    found = []
    if layout.rows:
        found.append(
            _decision(
                group,
                "rows",
                around(rows, 1, min(power_of_two(layout.row_count), 256)),
                rows,
                (Bound.MEMORY, Bound.LATENCY),
                "rows of a tile share what does not depend on the row",
            )
        )
    found.append(
        _decision(
            group,
            "columns",
            around(columns, min(64, width), min(width, 1 << 14)),
            columns,
            (Bound.MEMORY, Bound.LATENCY),
            "wide tiles have more loads in flight; narrow ones more programs and a smaller tail",
        )
    )
    tiles = blocks(layout.row_count, rows) * blocks(layout.column_count, columns)
    return [
        *found,
        _warps(group, rows * columns, gpu),
        *_programs(group, tiles, gpu),
        _cache(group, ("default", "stream"), "default"),
    ]


def _least_waste(extent: int, largest: int) -> int:
    """The largest block that leaves at most an eighth of its lanes idle, or the one that wastes least."""
    sizes = [s for s in (1 << n for n in range(21)) if min(256, largest) <= s <= largest]
    fits = [s for s in sizes if blocks(extent, s) * s <= extent + extent // 8]
    return max(fits) if fits else min(sizes, key=lambda s: (blocks(extent, s) * s, -s))


def _folded(group: Group, layout: Layout, gpu: Gpu) -> list[Decision]:
    """Of a group with folds or scans: whole rows or chunks, rows at once, chunk, warps, stages, persistence."""
    width, count = power_of_two(layout.column_count), power_of_two(layout.row_count)
    can_hold = width <= WHOLE_MAX and not any(s.contraction for s in group.stages)
    loops = passes(expanded(group, {"softmax_stats": "online", "variance": "shifted"}))
    several = sum(1 for loop in loops if loop.stages) > 1
    if layout.across:
        row, columns = LOOP, min(width, 1 if width <= UNROLLED_MAX else 32)
        rows = min(count, max(1, TILE // max(columns, 16)))
        while rows > 32 and blocks(layout.row_count, rows) < gpu.multiprocessors:
            rows //= 2
    else:
        row = WHOLE if can_hold and width <= WHOLE_DEFAULT_MAX else LOOP
        columns = min(width, LONG_CHUNK if several and width > LONG_ROW else TILE)
        rows = min(count, max(1, TILE // 2 // (width if row == WHOLE else columns)))
        while rows > 1 and blocks(layout.row_count, rows) < 2 * gpu.multiprocessors:
            rows //= 2
    held = rows * (width if row == WHOLE else columns)
    rows_most = max(rows, min(count, PER_THREAD_MAX * gpu.threads_max // 4 // (width if row == WHOLE else columns)))
    found = [
        _decision(
            group,
            "row",
            (WHOLE, LOOP) if can_hold else (LOOP,),
            row,
            (Bound.MEMORY, Bound.OCCUPANCY),
            "a row held in registers is read once; one read in chunks needs few registers",
        ),
        _decision(
            group,
            "rows",
            around(rows, 1, rows_most),
            rows,
            (Bound.LATENCY, Bound.OCCUPANCY),
            "several rows at once overlap their folds; short rows need them to fill a program",
        ),
        _decision(
            group,
            "columns",
            around(columns, 1, min(width, 1 << 15)),
            columns,
            (Bound.MEMORY, Bound.LATENCY),
            "the chunk of rows read in chunks: long ones have more loads in flight",
        ),
        _warps(group, held, gpu, long=columns == LONG_CHUNK and row == LOOP),
        _decision(
            group,
            "stages",
            (1, 2, 3, 4),
            1,
            (Bound.LATENCY, Bound.MEMORY),
            "chunks fetched ahead into shared memory",
        ),
        *_programs(group, blocks(layout.row_count, rows), gpu),
    ]
    kinds = ("default", "stream", "keep") if several else ("default", "stream")
    return [*found, _cache(group, kinds, "keep" if several and row == LOOP else "default")]
