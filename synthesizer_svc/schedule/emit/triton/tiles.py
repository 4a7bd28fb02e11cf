"""Tiles of rows and columns under a schedule (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.chips import Gpu
from synthesizer_svc.schedule.emit.triton.layout import Layout, layout_of
from synthesizer_svc.schedule.emit.triton.types import blocks, power_of_two
from synthesizer_svc.schedule.ir import Group
from synthesizer_svc.schedule.schedule import Value

WHOLE, LOOP = "whole", "loop"
WHOLE_MAX = 1 << 16
"""Elements of a row that one program can hold: 64 registers of each of 1024 threads."""
PER_THREAD_MAX = 64
"""Elements of a tile that one thread holds at most: a quarter of its registers, as there are several values of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileShape:
    """``rows`` by ``columns`` elements of a tile; ``whole``: a row is one tile. ``tiles`` in all, over ``programs``."""

    layout: Layout
    rows: int
    columns: int
    whole: bool
    warps: int
    stages: int
    tiles: int
    programs: int

    @property
    def flat(self) -> bool:
        """One row at a time: tiles have one dimension."""
        return self.rows == 1


def shape_of(group: Group, choices: Mapping[str, Value], gpu: Gpu) -> TileShape:
    """The tile shape of a group that is no matrix product. ``choices`` are complete."""
    layout = layout_of(group, ones=True)
    rows = min(int(choices.get("rows", 1)), power_of_two(layout.row_count))
    width = power_of_two(layout.column_count)
    whole = not layout.inner or choices.get("row") == WHOLE
    columns = width if layout.inner and whole else min(int(choices["columns"]), width)
    while rows > 1 and rows * columns > PER_THREAD_MAX * gpu.threads_max:
        rows //= 2
    warps = int(choices["warps"])
    while rows * columns > PER_THREAD_MAX * gpu.warp * warps and warps * gpu.warp < gpu.threads_max:
        warps *= 2
    tiles = blocks(layout.row_count, rows)
    if not layout.inner:
        tiles *= blocks(layout.column_count, columns)
    persistent = int(choices.get("programs", 0)) * gpu.multiprocessors
    return TileShape(
        layout=layout,
        rows=rows,
        columns=columns,
        whole=whole,
        warps=warps,
        stages=int(choices.get("stages", 1)),
        tiles=tiles,
        programs=min(tiles, persistent) if persistent else tiles,
    )
