"""One matrix product as one Triton kernel: tiles of rows and columns, with what comes before and after (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product as combinations
from math import prod

from shared.chips import Gpu
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.triton.matrix import Product
from synthesizer_svc.schedule.emit.triton.matrix_tiles import DIRECT_TAPS_MAX, Tile, pieces, stages_fit, unrolled
from synthesizer_svc.schedule.emit.triton.positions import placed
from synthesizer_svc.schedule.emit.triton.text import Lines
from synthesizer_svc.schedule.emit.triton.types import TL, Kernel, blocks
from synthesizer_svc.schedule.emit.triton.values import Frame, Values
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Value

ROW, COLUMN = "[:, None]", "[None, :]"


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
    return Kernel(
        name=found.group.name,
        text=writer.text(),
        buffers=tuple(b.name for b in buffers),
        programs=programs,
        warps=int(choices["warps"]),
        stages=min(int(choices["stages"]), stages_fit(tile, oriented, gpu)),
    )


@dataclass
class _Side:
    """A piece of a factor's tile: its values, in the scopes above and inside the loop over the sum."""

    values: Values
    expr: Expr
    dim: str
    k: str
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

    def __post_init__(self) -> None:
        self.batch = Values(buffers=self.buffers)

    def text(self) -> str:
        found, out = self.product, Lines()
        chosen = ", ".join(f"{k}={v}" for k, v in sorted(self.choices.items()))
        m, n, k = found.sizes
        out.add(f"# {found.group.name}: {found.batches} product(s) of {m} x {k} by {k} x {n}; {chosen}")
        out.add("@triton.jit")
        with out.block(f"def {found.group.name}({', '.join(self.buffers)})"):
            out.add(f"pid = tl.program_id(0){'.to(tl.int64)' if self.wide else ''}")
            if self.programs < self.count:
                with out.block(f"for tile in range(pid, {self.count}, {self.programs})"):
                    out.extend(self._tile())
            else:
                out.add("tile = pid")
                out.extend(self._tile())
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
        rows = self._pieces("m", "tile_m", found.m, self.tile.m)
        columns = self._pieces("n", "tile_n", found.n, self.tile.n)
        for _, lines in (*rows.values(), *columns.values()):
            out.extend(lines)
        for i, j in combinations(rows, columns):
            out.add(f"acc_{i}{j} = tl.zeros([{rows[i][0]}, {columns[j][0]}], tl.float32)")
        for head, tap in self._loops():
            self._multiplied(out, head, tap, tuple(rows), tuple(columns))
        for i, j in combinations(rows, columns):
            out.extend(self._epilogue(i, j))
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

    def _pieces(self, dim: str, tile: str, axes: tuple[Axis, ...], side: int) -> dict[str, tuple[int, list[str]]]:
        """By name: the size of a piece of a side, and the lines that give its positions and mask."""
        extent = prod(a.extent for a in axes)
        found: dict[str, tuple[int, list[str]]] = {}
        for number, (start, size) in enumerate(pieces(side)):
            name = f"{dim}{number}"
            shift = f" + {start}" if start else ""
            lines = [f"{name}_at = {tile} * {side}{shift} + tl.arange(0, {size})"]
            found[name] = (size, lines)
            if extent % side:
                lines.append(f"{name}_ok = {name}_at < {extent}")
        return found

    def _place(self, values: Values, frame: Frame, axes: tuple[Axis, ...], name: str, spread: str) -> None:
        """Axes of a side's piece in the given shape."""
        extent, side = prod(a.extent for a in axes), self.tile.m if name[0] == "m" else self.tile.n
        flat = f"{name}_{'r' if spread == ROW else 'c'}"
        frame.lines.add(f"{flat} = {name}_at{spread}")
        placed(values, frame, axes, flat, name)
        if extent % side:
            frame.lines.add(f"{flat}_ok = {name}_ok{spread}")
            values.masks[name] = f"{flat}_ok"

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
        self,
        out: Lines,
        head: str,
        taps: tuple[dict[Axis, ix.Index], ...],
        rows: tuple[str, ...],
        columns: tuple[str, ...],
    ) -> None:
        """One loop over the sum, into the accumulators."""
        axes = self._sum_axes()
        extent = prod(a.extent for a in axes)
        ragged = bool(extent % self.tile.k)
        program, body = Lines(), Lines()
        body.add(f"k_at = k + tl.arange(0, {self.tile.k})")
        if ragged:
            body.add(f"k_ok = k_at < {extent}")
        sides = {name: self._side(name, self.product.a, ROW, COLUMN, axes, ragged=ragged) for name in rows}
        sides |= {name: self._side(name, self.product.b, COLUMN, ROW, axes, ragged=ragged) for name in columns}
        for number, tap in enumerate(taps):
            tiles = {name: self._factor(side, tap, number) for name, side in sides.items()}
            for side in sides.values():
                body.extend(side.body.lines.lines)
                side.body.lines.lines.clear()
            body.extend(self._dots(tiles, rows, columns))
        for side in sides.values():
            program.extend(side.program.lines.lines)
        out.extend(program.lines)
        with out.block(head):
            out.extend(body.lines)

    def _dots(self, tiles: Mapping[str, str], rows: tuple[str, ...], columns: tuple[str, ...]) -> list[str]:
        precision = self.choices.get("precision")
        exact = f', input_precision="{precision}"' if precision else ""
        return [
            f"acc_{i}{j} = tl.dot({tiles[i]}, {tiles[j]}, acc_{i}{j}{exact})" for i, j in combinations(rows, columns)
        ]

    def _side(
        self, name: str, expr: Expr, spread: str, k_spread: str, axes: tuple[Axis, ...], *, ragged: bool
    ) -> _Side:
        values = Values(buffers=self.buffers, spots=dict(self.batch.spots), prefix=f"{name}_t")
        program = Frame()
        mine = self.product.m if name[0] == "m" else self.product.n
        self._place(values, program, mine, name, spread)
        body = Frame(parent=program, axes=set(axes))
        flat = f"{name}_k"
        body.lines.add(f"{flat} = k_at{k_spread}{'.to(tl.int64)' if self.wide else ''}")
        placed(values, body, axes, flat, "k")
        if ragged:
            body.lines.add(f"{flat}_ok = k_ok{k_spread}")
            values.masks["k"] = f"{flat}_ok"
        return _Side(values=values, expr=expr, dim=name, k=flat, program=program, body=body)

    def _factor(self, side: _Side, tap: dict[Axis, ix.Index], number: int) -> str:
        """The tile of a factor in the type of the product; zero outside."""
        expr, values, frame = ex.rewrite(side.expr, tap), side.values, side.body
        name, kind = f"{side.dim}_x{number}", TL[self.product.dtype]
        direct = _direct(expr)
        if direct is not None and self.buffers[direct.attr[0]].dtype is self.product.dtype:
            guards = (values.guard(expr, frame),) if expr.op == "guard" else ()
            frame.lines.add(f"{name} = {values.loaded(direct, frame, guards, raw=True)}")
            return name
        text = values.value(expr, frame)
        if "k" in values.masks:
            text = f"tl.where({values.masks['k']}, {text}, 0.0)"
        frame.lines.add(f"{name} = ({text}).to({kind})")
        return name

    # ------------------------------------------------------------------ after the sum

    def _epilogue(self, row: str, column: str) -> list[str]:
        """Results of a tile's piece, rounded as they are stored."""
        found, frame = self.product, Frame()
        values = Values(buffers=self.buffers, spots=dict(self.batch.spots), prefix=f"e{row}{column}_t")
        self._place(values, frame, found.m, row, ROW)
        self._place(values, frame, found.n, column, COLUMN)
        acc = f"acc_{row}{column}"
        values.rows[found.stage.name, 0] = acc
        if found.stage.writes[0] is not None:
            values.store(found.stage.writes[0], acc, frame)
        for stage in found.epilogue:
            name = values.value(stage.exprs[0], frame)
            values.rows[stage.name, 0] = name
            if stage.writes[0] is not None:
                values.store(stage.writes[0], name, frame)
        return frame.lines.lines


def _direct(expr: Expr) -> Expr | None:
    """The load that ``expr`` is, with zero where it is guarded."""
    if expr.op == "load":
        return expr
    if expr.op == "guard" and expr.args[0].op == "load" and expr.args[1].op == "const" and expr.args[1].attr == 0:
        return expr.args[0]
    return None
