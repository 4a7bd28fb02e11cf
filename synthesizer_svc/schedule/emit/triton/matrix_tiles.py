"""Tiles of matrix products and the other decisions about them (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from shared.chips import Gpu
from shared.dtypes import DType
from shared.events import Bound
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.triton.descriptors import DESCRIPTOR, POINTERS, possible
from synthesizer_svc.schedule.emit.triton.matrix import Product
from synthesizer_svc.schedule.emit.triton.ops import LIBDEVICE
from synthesizer_svc.schedule.emit.triton.types import blocks, power_of_two
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Decision, Value

SIDES = (16, 32, 64, 128, 256)
DEPTHS = (16, 32, 64, 128)
ELEMENTS_MAX = 128 * 256
"""Sums of a tile: 128 registers of each of 256 threads."""
SUMS_MAX = 128
"""Of one thread: half of its registers."""
WINDOW_STEPS_FEW = 4
"""Sums of a window over so few tiles of channels end before many tiles fetched ahead are of use, and what those take of
shared memory leaves room for fewer programs: on an H200 two stages were a quarter faster than four."""
LARGE = 128 * 128
"""Sums of a tile that needs a multiprocessor for itself."""
SLIM = 4
"""Tiles are at most so many times as long as wide."""
TILES_MAX = 14
SIDE_MIN = 16
"""The least side of a tile of a matrix unit."""
SHARED_SPARE = 4096
SHARED_USUAL = 96 << 10
"""With less, tiles of factors are not fetched far ahead."""
DIRECT_TAPS_MAX = 4
UNROLLED, FLATTENED = "unrolled", "flattened"
FINISH = (1, 2, 4)
"""Parts of a tile's columns that are finished one after the other."""
SERIES = frozenset({*LIBDEVICE, "erf", "sin", "cos"} - {"trunc", "round"})
"""Functions that need a dozen registers at once for every few elements; the others are an instruction or two."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows, columns and depth of what one program multiplies at a time."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @classmethod
    def parse(cls, text: str) -> Tile:
        m, n, k = map(int, text.split("x"))
        return cls(m, n, k)

    def stage_bytes(self, itemsize: int) -> int:
        """Of both factors' tiles."""
        return (self.m + self.n) * self.k * itemsize


def pieces(side: int) -> tuple[tuple[int, int], ...]:
    """(start, size) of the powers of two that ``side`` consists of: 96 is 64 and 32."""
    found, start = [], 0
    for bit in reversed(range(side.bit_length())):
        if side >> bit & 1:
            found.append((start, 1 << bit))
            start += 1 << bit
    return tuple(found)


def _sides(extent: int) -> tuple[int, ...]:
    """Sides worth having: powers of two up to the extent, and the extent itself where two pieces make it."""
    most = max(SIDE_MIN, power_of_two(extent))
    found = {s for s in SIDES if s <= most}
    rounded = blocks(extent, SIDE_MIN) * SIDE_MIN
    if rounded <= SIDES[-1] and len(pieces(rounded)) == 2 and rounded * 8 <= most * 7:
        found.add(rounded)
    return tuple(sorted(found))


def unrolled(product: Product, taps: Value | None) -> bool:
    """Whether the taps of a window are multiplied one by one."""
    return product.window and taps == UNROLLED


def taps_default(product: Product) -> str:
    """Few taps are multiplied one by one."""
    return UNROLLED if product.window and prod(a.extent for a in product.taps) <= DIRECT_TAPS_MAX else FLATTENED


def tiles(product: Product, gpu: Gpu) -> tuple[Tile, ...]:
    """Legal tiles, the most promising first."""
    m, n, k = product.sizes
    depth = product.channels.extent if product.window else k
    itemsize = product.dtype.itemsize
    deepest = max(SIDE_MIN, power_of_two(depth))
    found = [
        Tile(tm, tn, tk)
        for tm in _sides(m)
        for tn in _sides(n)
        for tk in DEPTHS
        if min(32, deepest) <= tk <= deepest
        and tm * tn <= ELEMENTS_MAX
        and max(tm, tn) <= SLIM * max(min(tm, tn), min(64, power_of_two(min(m, n))))
        and 2 * Tile(tm, tn, tk).stage_bytes(itemsize) * _taps_at_once(product) <= gpu.shared_bytes - SHARED_SPARE
    ]
    found.sort(key=lambda t: (cost(product, t, gpu), -t.n, t.k))
    kept: list[Tile] = []
    for tile in found:
        shapes = [t for t in kept if (t.m, t.n) == (tile.m, tile.n)]
        if len(shapes) < 2 and len(kept) < TILES_MAX:
            kept.append(tile)
    return tuple(kept)


def _taps_at_once(product: Product) -> int:
    taps = prod(a.extent for a in product.taps) if product.window else 1
    return taps if taps <= DIRECT_TAPS_MAX else 1


def cost(product: Product, tile: Tile, gpu: Gpu) -> float:
    """A model's time of the whole product, in units that only compare: waves of tiles, by how well a tile reuses."""
    m, n, k = product.sizes
    count = blocks(m, tile.m) * blocks(n, tile.n) * product.batches
    padded = sum(size for _, size in pieces(tile.m)) * sum(size for _, size in pieces(tile.n))
    reuse = 1 + 64 * (1 / tile.m + 1 / tile.n)
    depth = blocks(product.channels.extent if product.window else k, tile.k) * tile.k
    ideal = 128 // product.dtype.itemsize
    off = 1 + 0.05 * abs(ideal.bit_length() - tile.k.bit_length())
    # Small tiles share a multiprocessor, so their waves are finer.
    resident = max(1, ELEMENTS_MAX // padded // 2)
    waves = blocks(count, gpu.multiprocessors * resident) * resident if count > gpu.multiprocessors else 1
    # A short sum ends before the pipeline is full, unless other programs share the multiprocessor.
    steps = blocks(k, tile.k)
    fill = 1 + (4 if padded > LARGE else 1) / steps
    return waves * padded * reuse * depth * off * fill


def default_warps(product: Product, tile: Tile, gpu: Gpu) -> int:
    """Four for a window: its programs share a multiprocessor."""
    return min(8 if tile.m * tile.n >= 128 * 96 and not product.window else 4, gpu.threads_max // gpu.warp)


def _default_stages(product: Product, tile: Tile, gpu: Gpu) -> int:
    few = product.window and blocks(product.channels.extent, tile.k) <= WINDOW_STEPS_FEW
    if gpu.shared_bytes < SHARED_USUAL or few:
        return 2
    return min(3 if tile.m * tile.n >= 128 * 256 else 4, stages_fit(tile, product, gpu))


def warps_for(tile: Tile, chosen: int, gpu: Gpu) -> int:
    """``chosen`` warps, or as many as it takes to hold a tile's sums in registers."""
    while tile.m * tile.n > SUMS_MAX * gpu.warp * chosen and chosen * gpu.warp < gpu.threads_max:
        chosen *= 2
    return chosen


def finish_parts(columns: int, chosen: int) -> int:
    """Into how many parts so many columns are cut where ``chosen`` are wanted: none is narrower than a matrix unit."""
    return max(1, min(chosen, columns // SIDE_MIN))


def finish_default(product: Product, tile: Tile, gpu: Gpu) -> int:
    """Two where such a function meets as many sums as a thread can have: what it needs besides does not fit.

    Four where other elements are read for each of them, too. Whole where warps lie beside each other, because then
    parts would have to be exchanged between threads.
    """
    every = [e for s in product.epilogue for e in ex.walk(*s.exprs)]
    warps = default_warps(product, tile, gpu)
    full = tile.m * tile.n >= SUMS_MAX * gpu.warp * warps and tile.m >= SIDE_MIN * warps
    if not full or not any(e.op in SERIES for e in every):
        return 1
    across = (set(product.m), set(product.n))
    return 4 if any(e.op == "load" and all(set(e.axes) & side for side in across) for e in every) else 2


def stages_fit(tile: Tile, product: Product, gpu: Gpu) -> int:
    """Stages of factors' tiles that shared memory holds."""
    each = tile.stage_bytes(product.dtype.itemsize) * _taps_at_once(product)
    return max(1, min(5, (gpu.shared_bytes - SHARED_SPARE) // each))


def decisions(product: Product, buffers: Mapping[str, Buffer], gpu: Gpu) -> list[Decision]:
    """All decisions about one product."""
    group = product.group.name

    def decision(name: str, values: tuple[Value, ...], default: Value, pays: tuple[Bound, ...], why: str) -> Decision:
        return Decision(group=group, name=name, values=values, default=default, pays_when=pays, why=why)

    # A window's rows are few channels; they make better columns, beside tiles of many positions.
    turned = product.window and product.sizes[0] < product.sizes[1]
    oriented = product.turned() if turned else product
    legal = tiles(oriented, gpu)
    first = legal[0]
    found = [
        decision("tile", tuple(map(str, legal)), str(first), (Bound.COMPUTE, Bound.MEMORY, Bound.OCCUPANCY),
                 "large tiles read factors less often; small ones fill the chip and waste less at the edges"),
        decision("warps", (4, 8), default_warps(oriented, first, gpu), (Bound.COMPUTE, Bound.OCCUPANCY, Bound.LATENCY),
                 "more warps share a tile's sums: fewer registers each"),
        decision("stages", (1, 2, 3, 4, 5), _default_stages(oriented, first, gpu), (Bound.LATENCY, Bound.COMPUTE),
                 "tiles of factors fetched ahead into shared memory"),
        decision("swizzle", (1, 4, 8, 16), 8, (Bound.MEMORY,),
                 "so many rows of tiles go together, so that their factors are in the cache"),
    ]  # fmt: skip
    if product.epilogue:
        found.append(decision("finish", FINISH, finish_default(product, first, gpu),
                              (Bound.COMPUTE, Bound.OCCUPANCY),
                              "what follows the sum needs registers beside it: fewer in parts"))  # fmt: skip
    m, n, _ = oriented.sizes
    if blocks(m, first.m) * blocks(n, first.n) * product.batches >= 2 * gpu.multiprocessors:
        found.append(decision("programs", (0, 1, 2), 0, (Bound.LATENCY, Bound.LAUNCH),
                              "so many programs a multiprocessor go through all tiles; 0 is one a tile"))  # fmt: skip
    if product.window:
        found.append(decision("taps", (UNROLLED, FLATTENED), taps_default(product),
                              (Bound.MEMORY, Bound.LATENCY),
                              "taps one by one have constant offsets; flattened ones make one long sum"))  # fmt: skip
        found.append(decision("orientation", ("rows", "columns"), "columns" if turned else "rows", (Bound.COMPUTE,),
                              "whether channels are the rows or the columns of a tile"))  # fmt: skip
    if gpu.copy_engine and not product.window and possible(product, buffers):
        # A tile that takes all threads' registers has none to spare for addresses: a tenth faster on an H200.
        whole = first.m * first.n >= ELEMENTS_MAX and product.dtype.itemsize == 2
        usual = DESCRIPTOR if whole else POINTERS
        found.append(decision("loads", (POINTERS, DESCRIPTOR), usual, (Bound.COMPUTE, Bound.LATENCY),
                              "the copy engine fetches tiles of factors without a thread's help"))  # fmt: skip
    if product.dtype is DType.F32 and gpu.tensor_float32:
        found.append(decision("precision", ("tf32x3", "ieee"), "tf32x3", (Bound.COMPUTE,),
                              "three products of rounded parts are as exact, and matrix units do them"))  # fmt: skip
    return found
