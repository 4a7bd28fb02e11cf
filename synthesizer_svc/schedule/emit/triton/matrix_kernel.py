"""One matrix product as one Triton kernel: tiles of rows and columns, with what comes before and after (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product as combinations
from math import prod

from shared.chips import Gpu
from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.triton.descriptors import DESCRIPTOR, Descriptor, descriptor_of, possible
from synthesizer_svc.schedule.emit.triton.matrix import Product
from synthesizer_svc.schedule.emit.triton.matrix_tiles import (
    DIRECT_TAPS_MAX,
    Tile,
    finish_parts,
    pieces,
    stages_fit,
    unrolled,
    warps_for,
)
from synthesizer_svc.schedule.emit.triton.positions import placed
from synthesizer_svc.schedule.emit.triton.spans import COLUMN, ROW, Span, factor
from synthesizer_svc.schedule.emit.triton.text import Lines
from synthesizer_svc.schedule.emit.triton.types import Kernel, blocks
from synthesizer_svc.schedule.emit.triton.values import Frame, Values
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Value


def emit_product(
    found: Product, buffers: tuple[Buffer, ...], choices: Mapping[str, Value], gpu: Gpu, *, wide: bool
) -> Kernel:
    """The kernel of a product. ``choices`` are complete for its space; ``buffers`` are those it reads and writes."""
    turned = choices.get("orientation", "rows") == "columns"
    oriented = found.turned() if turned else found
    tile = Tile.parse(str(choices["tile"]))
    m, n, _ = oriented.sizes
    count = blocks(m, tile.m) * blocks(n, tile.n) * oriented.batches
    persistent = int(choices.get("programs", 0)) * gpu.multiprocessors
    programs = min(count, persistent) if persistent else count
    writer = _Writer(
        product=oriented,
        tile=tile,
        choices=choices,
        buffers={b.name: b for b in buffers},
        wide=wide,
        count=count,
        programs=programs,
    )
    text = writer.text()
    return Kernel(
        name=found.group.name,
        text=text,
        buffers=tuple(b.name for b in buffers),
        programs=programs,
        warps=warps_for(tile, int(choices["warps"]), gpu),
        stages=min(int(choices["stages"]), stages_fit(tile, oriented, gpu)),
        descriptors=tuple((d.name, d.made) for d in writer.descriptors.values()),
    )


@dataclass
class _Side:
    """A piece of a factor's tile: its values, in the scopes above and inside the loop over the sum."""

    name: str
    values: Values
    expr: Expr
    program: Frame
    body: Frame


@dataclass
class _Writer:
    product: Product
    tile: Tile
    choices: Mapping[str, Value]
    buffers: Mapping[str, Buffer]
    wide: bool
    count: int
    programs: int
    batch: Values = field(init=False)
    descriptors: dict[str, Descriptor] = field(default_factory=dict)
    """By the side they are fetched for."""

    def __post_init__(self) -> None:
        self.batch = Values(buffers=self.buffers, wide=self.wide)

    def text(self) -> str:
        found, out = self.product, Lines()
        m, n, k = found.sizes
        out.add(f"# {found.group.name}: {found.batches} product(s) of {m} x {k} by {k} x {n} on tiles of {self.tile}")
        out.add("@triton.jit")
        body = self._tile()
        names = [*self.buffers, *(d.name for d in self.descriptors.values())]
        with out.block(f"def {found.group.name}({', '.join(names)})"):
            out.add(f"pid = tl.program_id(0){'.to(tl.int64)' if self.wide else ''}")
            if self.programs < self.count:
                with out.block(f"for tile in range(pid, {self.count}, {self.programs})"):
                    out.extend(body)
            else:
                out.add("tile = pid")
                out.extend(body)
        return out.text()

    # ------------------------------------------------------------------ where the tile is

    def _tile(self) -> list[str]:
        """Everything about one tile."""
        found, out = self.product, Lines()
        m, n, _ = found.sizes
        down, across = blocks(m, self.tile.m), blocks(n, self.tile.n)
        if found.batches > 1:
            out.add(f"z = tile // {down * across}")
            out.add(f"place = tile % {down * across}")
        else:
            out.add("place = tile")
        out.extend(self._swizzled(down, across))
        base = Frame()
        placed(self.batch, base, found.z, "z", "")
        out.extend(base.lines.lines)
        rows, columns = self._pieces("m", found.m, self.tile.m), self._pieces("n", found.n, self.tile.n)
        for span, start in (*rows, *columns):
            out.extend(span.lines(start))
        pairs = [(row, column) for (row, _), (column, _) in combinations(rows, columns)]
        for row, column in pairs:
            out.add(f"{_sums(row, column)} = tl.zeros([{row.size}, {column.size}], tl.float32)")
        for head, taps in self._loops():
            self._multiplied(out, head, taps, pairs)
        starts = {column.name: start for column, start in columns}
        for row, column in pairs:
            for part, start in self._parted(out, row, column, starts[column.name]):
                out.extend(part.lines(start) if start else [])
                out.extend(self._epilogue(row, part))
        return out.lines

    def _swizzled(self, down: int, across: int) -> list[str]:
        """Tiles in groups of rows, so that neighbours in time share factors."""
        size = min(int(self.choices.get("swizzle", 1)), down)
        if size == 1 or across == 1:
            return [f"tile_m = place // {across}", f"tile_n = place % {across}"]
        lines = [f"first = place // {size * across} * {size}"]
        if down % size:
            lines.append(f"size = tl.minimum({down} - first, {size})")
        rows = "size" if down % size else str(size)
        return [
            *lines,
            f"tile_m = first + place % {size * across} % {rows}",
            f"tile_n = place % {size * across} // {rows}",
        ]

    def _pieces(self, dim: str, axes: tuple[Axis, ...], side: int) -> list[tuple[Span, str]]:
        """Spans that make up a side of the tile, each with its first number."""
        ragged = bool(prod(a.extent for a in axes) % side)
        return [
            (
                Span(name=f"{dim}{number}", axes=axes, size=size, ragged=ragged),
                f"tile_{dim} * {side}" + (f" + {start}" if start else ""),
            )
            for number, (start, size) in enumerate(pieces(side))
        ]

    # ------------------------------------------------------------------ the sum

    def _loops(self) -> Iterator[tuple[str, tuple[dict[Axis, ix.Index], ...]]]:
        """Loops over the sum: the head of each, and the taps whose products are in its body."""
        found = self.product
        if not unrolled(found, self.choices.get("taps")):
            yield self._head(prod(a.extent for a in found.k)), ({},)
            return
        taps = found.taps
        every = [
            {axis: ix.constant(value) for axis, value in zip(taps, values, strict=True)}
            for values in combinations(*(range(a.extent) for a in taps))
        ]
        head = self._head(found.channels.extent)
        if len(every) <= DIRECT_TAPS_MAX:
            yield head, tuple(every)
        else:
            for tap in every:
                yield head, (tap,)

    def _head(self, extent: int) -> str:
        return f"for k in range(0, {extent}, {self.tile.k})"

    def _sum_axes(self) -> tuple[Axis, ...]:
        found = self.product
        return (found.channels,) if unrolled(found, self.choices.get("taps")) else found.k

    def _multiplied(
        self, out: Lines, head: str, taps: tuple[dict[Axis, ix.Index], ...], pairs: list[tuple[Span, Span]]
    ) -> None:
        """One loop over the sum, into the accumulators."""
        axes = self._sum_axes()
        depth = Span(name="k", axes=axes, size=self.tile.k, ragged=bool(prod(a.extent for a in axes) % self.tile.k))
        body = Lines()
        body.extend(depth.lines("k"))
        self._describe(pairs, depth)
        sides = {row.name: self._side(row, self.product.a, ROW, COLUMN, depth) for row, _ in pairs}
        sides |= {column.name: self._side(column, self.product.b, COLUMN, ROW, depth) for _, column in pairs}
        for number, tap in enumerate(taps):
            for side in sides.values():
                expr, name = ex.rewrite(side.expr, tap), f"{side.name}_x{number}"
                if side.name in self.descriptors:
                    body.add(f"{name} = {self._fetched(side.name)}")
                    continue
                factor(side.values, side.body, expr, self.product.dtype, self.buffers, (depth,), name)
                body.extend(side.body.lines.lines)
                side.body.lines.lines.clear()
            body.extend(self._dots(pairs, number))
        for side in sides.values():
            out.extend(side.program.lines.lines)
        with out.block(head):
            out.extend(body.lines)

    def _describe(self, pairs: list[tuple[Span, Span]], depth: Span) -> None:
        """Descriptors of both factors' pieces, where they are asked for and possible."""
        found = self.product
        if self.choices.get("loads") != DESCRIPTOR or self.wide or not possible(found, self.buffers):
            return
        for row, column in pairs:
            for span, expr in ((row, found.a), (column, found.b)):
                made = descriptor_of(found, expr, span, depth, self.buffers)
                assert made is not None
                self.descriptors[span.name] = made

    def _fetched(self, side: str) -> str:
        """A tile in the shape that the product takes: rows by depth, or depth by columns."""
        descriptor, dim = self.descriptors[side], side[0]
        first = {span.name: start for span, start in self._pieces(dim, getattr(self.product, dim), self._extent(dim))}
        text = descriptor.load(first[side], "k")
        return text if descriptor.turned is (dim == "n") else f"tl.trans({text})"

    def _extent(self, dim: str) -> int:
        return self.tile.m if dim == "m" else self.tile.n

    def _dots(self, pairs: list[tuple[Span, Span]], number: int) -> list[str]:
        precision = self.choices.get("precision", "ieee")
        exact = f', input_precision="{precision}"' if self.product.dtype is DType.F32 else ""
        return [
            f"{_sums(i, j)} = tl.dot({i.name}_x{number}, {j.name}_x{number}, {_sums(i, j)}{exact})" for i, j in pairs
        ]

    def _side(self, span: Span, expr: Expr, spread: str, k_spread: str, depth: Span) -> _Side:
        values = Values(buffers=self.buffers, spots=dict(self.batch.spots), wide=self.wide, prefix=f"{span.name}_t")
        program = Frame()
        span.place(values, program, spread)
        body = Frame(parent=program, axes=set(depth.axes))
        depth.place(values, body, k_spread, wide=self.wide)
        return _Side(name=span.name, values=values, expr=expr, program=program, body=body)

    # ------------------------------------------------------------------ after the sum

    def _parted(self, out: Lines, row: Span, column: Span, start: str) -> list[tuple[Span, str]]:
        """Columns that are finished together, each part with its first number unless that is said already.

        Halves are what a thread holds of both: its sums lie along columns, so a split moves nothing between threads.
        """
        found = [(column, start)]
        for _ in range(finish_parts(column.size, int(self.choices.get("finish", 1))).bit_length() - 1):
            halves: list[tuple[Span, str]] = []
            for one, first in found:
                half = one.size // 2
                both = [replace(one, name=f"{one.name}h{number}", size=half) for number in (0, 1)]
                names = ", ".join(_sums(row, part) for part in both)
                turned = f"tl.permute(tl.reshape({_sums(row, one)}, [{row.size}, 2, {half}]), [0, 2, 1])"
                out.add(f"{names} = tl.split({turned})")
                halves += [(both[0], first), (both[1], f"{first} + {half}")]
            found = halves
        return found if len(found) > 1 else [(column, "")]

    def _epilogue(self, row: Span, column: Span) -> list[str]:
        """Results of a tile's piece, rounded as they are stored."""
        found, frame, sums = self.product, Frame(), _sums(row, column)
        values = Values(
            buffers=self.buffers, spots=dict(self.batch.spots), wide=self.wide, prefix=f"e{row.name}{column.name}_t"
        )
        row.place(values, frame, ROW)
        column.place(values, frame, COLUMN)
        finished(values, frame, found, sums)
        return frame.lines.lines


def finished(values: Values, frame: Frame, found: Product, sums: str) -> None:
    """What comes after the sum, stored where it leaves."""
    values.rows[found.stage.name, 0] = sums
    if found.stage.writes[0] is not None:
        values.store(found.stage.writes[0], sums, frame)
    for stage in found.epilogue:
        name = values.value(stage.exprs[0], frame)
        values.rows[stage.name, 0] = name
        if stage.writes[0] is not None:
            values.store(stage.writes[0], name, frame)


def _sums(row: Span, column: Span) -> str:
    return f"acc_{row.name}{column.name}"
