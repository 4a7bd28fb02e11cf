"""How a group lies on blocks and threads under a schedule (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from shared.chips import Gpu
from synthesizer_svc.schedule.emit.cuda import folds
from synthesizer_svc.schedule.emit.cuda.values import VECTOR_BYTES, aligned
from synthesizer_svc.schedule.emit.triton.layout import Layout, layout_of
from synthesizer_svc.schedule.emit.triton.types import blocks, power_of_two
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.schedule import Value

HELD, AGAIN = "held", "again"
HELD_MAX = 64
"""Elements of a row that one thread keeps in registers: a quarter of these, as there are several values of each."""
NARROW_MAX = 1 << 30
"""Positions up to which 32 bits do, steps beyond the end included."""
WARP_LEAST = 32
"""Threads of a warp that one source for all chips counts on."""
LAUNCH_THREADS = (1 << 32) - 1
"""Of a whole grid, which HIP counts in 32 bits (its programming manual, "Kernel launch limits")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShape:
    """``rows`` of a block, each by ``threads``; ``width`` neighbours at once, ``unroll`` times. ``tiles`` in all, over
    ``blocks``. Without folds a row is everything, and ``threads`` are those of a block.
    """

    layout: Layout
    rows: int
    threads: int
    width: int
    unroll: int
    held: bool
    across: bool
    tiles: int
    blocks: int
    wide: bool
    """Positions need 64 bits."""

    @property
    def block_threads(self) -> int:
        return self.rows * self.threads

    @property
    def position(self) -> str:
        """C++ type of positions."""
        return "int64_t" if self.wide else "int"


def lane_axes(group: Group) -> list[Axis]:
    """The axes that vectors lie along: the last one of every loop."""
    inner = [s.inner for s in group.stages if s.inner]
    if inner:
        return list(dict.fromkeys(axes[-1] for axes in inner))
    return [group.outer[-1]] if group.outer else []


def widths(plan: Plan, group: Group) -> tuple[int, ...]:
    """Numbers of neighbours that some access can have together, ascending; 1 where none can."""
    axes, layout = lane_axes(group), layout_of(group)
    if not axes or (layout.inner and layout.across):
        return (1,)
    accesses = [(load.attr[0], load.attr[1][0]) for load in group.loads()]
    accesses += [(w.buffer, w.offset) for s in group.stages for w in s.writes if w is not None]
    sizes = {b.name: b.dtype.itemsize for b in plan.buffers}

    def useful(width: int) -> bool:
        return any(
            aligned(offset, axis, width, sizes[name]) and width * sizes[name] <= VECTOR_BYTES
            for name, offset in accesses
            for axis in axes
        )

    return (1, *(w for w in (2, 4, 8, 16) if all(a.extent % w == 0 for a in axes) and useful(w)))


def shape_of(plan: Plan, group: Group, choices: Mapping[str, Value], gpu: Gpu, *, wide: bool) -> BlockShape:
    """The shape of ``group``. ``choices`` are complete for its space; what does not fit is cut."""
    layout = layout_of(group)
    width = max(w for w in widths(plan, group) if w <= int(choices.get("width", 1)))
    inner = list(dict.fromkeys(s.inner for s in group.stages if s.inner))
    threads = int(choices["threads"])
    if not inner:
        unroll = int(choices.get("unroll", 1))
        tiles = blocks(max(1, group.rows // width), threads * unroll)
        return BlockShape(
            layout=layout, rows=1, threads=threads, width=width, unroll=unroll, held=False, across=False, tiles=tiles,
            blocks=_blocks(tiles, threads, choices, gpu), wide=wide or group.rows >= NARROW_MAX,
        )  # fmt: skip
    longest = max(prod(a.extent for a in axes) for axes in inner)
    across = layout.across
    threads = min(threads, power_of_two(blocks(longest, width)), gpu.threads_max)
    least = 1 if across else max(gpu.warp // threads, 1)
    rows = max(int(choices.get("rows", 1)), gpu.warp // threads, 1)
    declared = gpu.shared_declared or gpu.shared_bytes
    while rows * threads > gpu.threads_max or (
        rows > least and shared_entries(rows, threads, across=across) * _accumulators(group) > declared
    ):
        rows //= 2
    holds = len(inner) == 1 and blocks(longest, threads * width) * width <= HELD_MAX
    tiles = blocks(group.rows, rows)
    return BlockShape(
        layout=layout,
        rows=rows,
        threads=threads,
        width=width,
        unroll=int(choices.get("unroll", 1)),
        held=holds and choices.get("row") == HELD,
        across=across,
        tiles=tiles,
        blocks=_blocks(tiles, rows * threads, choices, gpu),
        wide=wide or group.rows * longest >= NARROW_MAX,
    )


def shared_entries(rows: int, threads: int, *, across: bool) -> int:
    """Accumulators of each fold that lie in shared memory: of every thread, or of every warp of a row of several."""
    if across:
        return rows * threads if threads > 1 else 0
    return rows * (threads // WARP_LEAST) if threads > WARP_LEAST else 0


def _accumulators(group: Group) -> int:
    """Bytes of one of each fold."""
    return sum(folds.accumulator_bytes(s) for s in group.stages if s.kind == "reduce")


def _blocks(tiles: int, threads: int, choices: Mapping[str, Value], gpu: Gpu) -> int:
    persistent = int(choices.get("programs", 0)) * gpu.multiprocessors
    return min(tiles, persistent or tiles, LAUNCH_THREADS // threads)
