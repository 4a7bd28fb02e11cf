"""One row group as one Triton kernel: element by element, rows held whole, or rows read in chunks (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from shared.chips import Gpu
from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.triton import folds
from synthesizer_svc.schedule.emit.triton.folds import Tile
from synthesizer_svc.schedule.emit.triton.positions import placed
from synthesizer_svc.schedule.emit.triton.text import Lines
from synthesizer_svc.schedule.emit.triton.tiles import TileShape, shape_of
from synthesizer_svc.schedule.emit.triton.types import TL, Kernel, blocks, power_of_two
from synthesizer_svc.schedule.emit.triton.values import Frame, Values, is_wide
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan, Stage
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Value
from synthesizer_svc.schedule.stages import CHUNKED, STATISTICS, Pass, expanded, passes

R = "r"
KEPT = ', eviction_policy="evict_last"'
PASSED = ', eviction_policy="evict_first"'


def buffers_of(plan: Plan, group: Group) -> list[Buffer]:
    """Buffers a group reads, then those it writes, each once."""
    reads = [load.attr[0] for load in group.loads()]
    writes = [w.buffer for s in group.stages for w in s.writes if w is not None]
    return [plan.buffer(name) for name in dict.fromkeys(reads + writes)]


def emit_rows(plan: Plan, group: Group, choices: Mapping[str, Value], gpu: Gpu) -> Kernel:
    """The kernel of ``group``. ``choices`` are complete for its space."""
    shape = shape_of(group, choices, gpu)
    buffers = buffers_of(plan, group)
    written = {w.buffer for s in group.stages for w in s.writes if w is not None}
    writer = _Writer(
        group=group,
        shape=shape,
        choices=choices,
        values=Values(
            buffers={b.name: b for b in buffers},
            streamed=frozenset(shape.layout.rows or shape.layout.columns),
            wide=is_wide(buffers),
        ),
        exact_scans=any(b.dtype is DType.F32 for b in buffers if b.name in written),
    )
    return Kernel(
        name=group.name,
        text=writer.text(),
        buffers=tuple(b.name for b in buffers),
        programs=shape.programs,
        warps=shape.warps,
    )


def accumulator(stage: Stage) -> str:
    """Of a reduction; buffers may be named as stages are."""
    return f"{stage.name}_a"


@dataclass
class _Writer:
    group: Group
    shape: TileShape
    choices: Mapping[str, Value]
    values: Values
    exact_scans: bool
    """Prefixes of float32 are kept in float64, as torch does where results stay float32."""
    column_dims: dict[tuple[Axis, ...], str] = field(default_factory=dict)

    def text(self) -> str:
        shape, program = self.shape, Frame()
        out = Lines()
        out.add(f"# {self.group.name}: {self.group.kind} of {self.group.rows} rows; {self._described()}")
        out.add("@triton.jit")
        if self.choices.get("cache") == "stream":
            self.values.load_options = self.values.store_options = PASSED
        with out.block(f"def {self.group.name}({', '.join(self.values.buffers)})"):
            program.lines.add(f"pid = tl.program_id(0){'.to(tl.int64)' if self.values.wide else ''}")
            if not shape.layout.inner:
                tile = self._elements(program)
            elif shape.whole:
                tile = self._whole(program)
            else:
                tile = self._chunks(program)
            out.extend(program.lines.lines)
            if shape.programs < shape.tiles:
                with out.block(f"for tile in range(pid, {shape.tiles}, {shape.programs})"):
                    out.extend(tile.lines.lines)
            else:
                out.add("tile = pid")
                out.extend(tile.lines.lines)
        return out.text()

    def _described(self) -> str:
        """The tile, in words; choices that change nothing are left out, so that equal kernels have equal texts."""
        shape = self.shape
        if not shape.layout.inner:
            return f"tiles of {shape.rows} x {shape.columns}"
        rows = "row" if shape.flat else f"{shape.rows} rows"
        return f"{rows} held whole" if shape.whole else f"{rows} in chunks of {shape.columns}"

    # ------------------------------------------------------------------ positions

    def _row_positions(self, frame: Frame, tile: str) -> None:
        shape, rows = self.shape, self.shape.layout.rows
        if not rows:
            return
        if shape.flat:
            frame.lines.add(f"{R} = {tile}")
            placed(self.values, frame, rows, R, "")
        else:
            frame.lines.add(f"{R} = ({tile} * {shape.rows} + tl.arange(0, {shape.rows}))[:, None]")
            self._mask(frame, R, shape.layout.row_count, shape.rows)
            placed(self.values, frame, rows, R, R)
            self.values.result_dim = R

    def _columns(self, frame: Frame, axes: tuple[Axis, ...], size: int, start: str = "") -> str:
        """Positions of one tile's columns; the name of their dimension."""
        dim = self.column_dims.setdefault(axes, f"c{len(self.column_dims) or ''}")
        spread = f"tl.arange(0, {size})"
        spread = f"({start} + {spread})" if start else spread
        spread += "" if self.shape.flat else "[None, :]"
        frame.lines.add(f"{dim} = {spread}{'.to(tl.int64)' if self.values.wide else ''}")
        self._mask(frame, dim, prod(a.extent for a in axes), size)
        placed(self.values, frame, axes, dim, dim)
        return dim

    def _mask(self, frame: Frame, dim: str, extent: int, size: int) -> None:
        self.values.masks.pop(dim, None)
        if extent % size:
            frame.lines.add(f"{dim}_in = {dim} < {extent}")
            self.values.masks[dim] = f"{dim}_in"

    def _tile(self, size: int) -> Tile:
        if self.shape.flat:
            return Tile(shape=f"[{size}]", axis=0, keep=False)
        return Tile(shape=f"[{self.shape.rows}, {size}]", axis=1, keep=True)

    # ------------------------------------------------------------------ element by element

    def _elements(self, program: Frame) -> Frame:
        shape, layout = self.shape, self.shape.layout
        tile = Frame(parent=program, axes={*layout.rows, *layout.columns})
        across = blocks(layout.column_count, shape.columns)
        if layout.columns:
            row = f"(tile // {across})" if across > 1 else "tile"
            column = ("tile" if not layout.rows else f"(tile % {across})") if across > 1 else ""
            self._row_positions(tile, row)
            self._columns(tile, layout.columns, shape.columns, f"{column} * {shape.columns}" if column else "")
        for stage in self.group.stages:
            self._result(stage, (self.values.value(stage.exprs[0], tile),), tile)
        return tile

    # ------------------------------------------------------------------ whole rows

    def _whole(self, program: Frame) -> Frame:
        stages = expanded(self.group, {**self.choices, "softmax_stats": "online", "variance": "two_pass"})
        for axes in dict.fromkeys(s.inner for s in stages if s.inner or s.kind in ("reduce", "scan")):
            self._columns(program, axes, power_of_two(prod(a.extent for a in axes)))
        tile = Frame(parent=program, axes=set(self.shape.layout.rows))
        self._row_positions(tile, "tile")
        for stage in stages:
            if stage.kind == "value":
                self._result(stage, (self.values.value(stage.exprs[0], tile),), tile)
            elif stage.kind == "reduce":
                self._reduced(stage, tile)
            elif stage.kind == "scan":
                self._scanned(stage, tile, "")
            else:
                self._stored(stage, self.values.value(stage.exprs[0], tile), tile)
        return tile

    def _reduced(self, stage: Stage, frame: Frame) -> None:
        """A reduction of a row held whole."""
        size = power_of_two(stage.inner_size)
        tile, name = self._tile(size), accumulator(stage)
        if stage.op == "softstats":
            self._softstats(stage, frame, tile)
            return
        frame.lines.add(f"{name} = {self._element(stage, frame, tile)}")
        if folds.is_arg(stage):
            position = self.values.value(stage.exprs[1], frame)
            if not stage.inner:
                position = f"tl.zeros({tile.shape}, tl.int64) + {position}"
            frame.lines.add(f"{name}_at = {self._masked(stage.inner, position, folds.FAR)}")
        self._finished(stage, frame, tile)

    def _softstats(self, stage: Stage, frame: Frame, tile: Tile) -> None:
        """Maximum and sum of exponentials; a row of nothing but -inf has a finite maximum, and the sum 0."""
        dtype, name = stage.exprs[0].dtype, accumulator(stage)
        frame.lines.add(f"{name} = {self._element(stage, frame, tile)}")
        top = f"tl.maximum(tl.max({name}, {tile.folding}), {folds.LOWEST})"
        self._result(stage, (top,), frame)
        shifted = ex.make("sub", stage.exprs[0], ex.make("row", attr=(stage.name, 0), dtype=dtype), dtype=dtype)
        exponential = ex.make("exp_nonpositive", shifted, dtype=dtype)
        terms = self._element(replace(stage, op="sum", exprs=(exponential,)), frame, tile)
        self._result(stage, (f"tl.sum({terms}, {tile.folding})",), frame, first=1)

    def _finished(self, stage: Stage, frame: Frame, tile: Tile) -> None:
        lines, texts = folds.finish(stage, accumulator(stage), tile)
        frame.lines.extend(lines)
        self._result(stage, texts, frame)

    def _element(self, stage: Stage, frame: Frame, tile: Tile) -> str:
        """What is folded, with what changes nothing where there is no element, as a whole tile."""
        x = self.values.value(stage.exprs[0], frame)
        dim = self.column_dims[stage.inner]
        if dim in self.values.masks:
            return self._masked(stage.inner, x, folds.identity(stage))
        if dim in self.values.dims(stage.exprs[0]):
            return x
        kind = stage.exprs[0].dtype
        return f"tl.zeros({tile.shape}, {TL[kind]}) + {x}"

    def _masked(self, inner: tuple[Axis, ...], x: str, otherwise: str) -> str:
        mask = self.values.masks.get(self.column_dims[inner])
        return f"tl.where({mask}, {x}, {otherwise})" if mask else x

    # ------------------------------------------------------------------ rows in chunks

    def _chunks(self, program: Frame) -> Frame:
        tile = Frame(parent=program, axes=set(self.shape.layout.rows))
        self._row_positions(tile, "tile")
        for place, loop in enumerate(loops := passes(expanded(self.group, self.choices))):
            if loop.stages:
                self._pass(loop, tile, last=all(not later.stages for later in loops[place + 1 :]))
            for stage in loop.after:
                self._result(stage, (self.values.value(stage.exprs[0], tile),), tile)
        return tile

    def _pass(self, loop: Pass, tile: Frame, *, last: bool) -> None:
        size = min(self.shape.columns, power_of_two(prod(a.extent for a in loop.inner)))
        extent, form = prod(a.extent for a in loop.inner), self._tile(size)
        if self.choices.get("cache") == "keep":
            self.values.load_options = PASSED if last else KEPT
            self.values.store_options = PASSED
        for stage in loop.stages:
            if self._is_chunked(stage):
                tile.lines.extend(folds.chunked_start(stage, accumulator(stage), form))
            elif stage.kind == "reduce":
                tile.lines.extend(folds.start(stage, accumulator(stage), form))
            elif stage.kind == "scan":
                tile.lines.extend(self._carry(stage))
        body = Frame(parent=tile, axes=set(loop.inner), results={s.name for s in loop.stages})
        self._columns(body, loop.inner, size, "start")
        for stage in loop.stages:
            if self._is_chunked(stage):
                x = self._element(stage, body, form)
                body.lines.extend(folds.chunked_step(accumulator(stage), x, form))
            elif stage.kind == "reduce":
                position = self.values.value(stage.exprs[1], body) if folds.is_arg(stage) else ""
                x = self._element(stage, body, form)
                body.lines.extend(folds.step(stage, accumulator(stage), x, position))
            elif stage.kind == "scan":
                self._scanned(stage, body, f"{stage.name}_carry")
            else:
                self._stored(stage, self.values.value(stage.exprs[0], body), body)
        staged = f", num_stages={self.shape.stages}" if self.shape.stages > 1 else ""
        with tile.lines.block(f"for start in tl.range(0, {extent}, {size}{staged})"):
            tile.lines.extend(body.lines.lines)
        for stage in loop.stages:
            if self._is_chunked(stage):
                self._result(stage, folds.chunked_finish(accumulator(stage), form), tile)
            elif stage.kind == "reduce":
                self._finished(stage, tile, form)

    def _is_chunked(self, stage: Stage) -> bool:
        return stage.op == "softstats" and self.choices.get(STATISTICS) == CHUNKED

    # ------------------------------------------------------------------ scans

    def _carry(self, stage: Stage) -> list[str]:
        first = "0" if stage.op == "cumsum" else "1"
        shape = "[1]" if self.shape.flat else f"[{self.shape.rows}, 1]"
        return [f"{stage.name}_carry = tl.full({shape}, {first}, {self._scan_type(stage)})"]

    def _scan_type(self, stage: Stage) -> str:
        dtype = stage.exprs[0].dtype
        return TL[DType.F64 if dtype is DType.F32 and self.exact_scans else dtype]

    def _scanned(self, stage: Stage, frame: Frame, carry: str) -> None:
        """A prefix of a chunk, continued from ``carry``, or of a whole row."""
        kind, own, name = self._scan_type(stage), TL[stage.exprs[0].dtype], stage.name
        dim = self.column_dims[stage.inner]
        size = min(self.shape.columns, power_of_two(stage.inner_size))
        tile = self._tile(size)
        neutral = "0" if stage.op == "cumsum" else "1"
        x = self.values.value(stage.exprs[0], frame)
        if dim in self.values.masks:
            x = self._masked(stage.inner, x, neutral)
        elif dim not in self.values.dims(stage.exprs[0]):
            x = f"tl.zeros({tile.shape}, {own}) + {x}"
        frame.lines.add(f"{name}_x = ({x}).to({kind})")
        frame.lines.add(f"{name}_p = tl.{stage.op}({name}_x, axis={tile.axis})")
        if carry:
            sign = "+" if stage.op == "cumsum" else "*"
            frame.lines.add(f"{name}_p = {name}_p {sign} {carry}")
            if stage.op == "cumsum":
                total = f"tl.sum({name}_x, axis={tile.axis}, keep_dims=True)"
            else:
                total = f"tl.reduce({name}_x, {tile.axis}, multiplied, keep_dims=True)"
            frame.lines.add(f"{carry} = {carry} {sign} {total}")
        frame.lines.add(f"{name}_v = {name}_p.to({own})")
        frame.results.add(name)
        self.values.scans[name] = f"{name}_v"
        self.values.scan_dims = frozenset({dim, self.values.result_dim})
        if stage.writes[0] is not None:
            self.values.store(stage.writes[0], f"{name}_v", frame)

    # ------------------------------------------------------------------ results

    def _result(self, stage: Stage, texts: tuple[str, ...], frame: Frame, first: int = 0) -> None:
        """Name the results of a row from component ``first`` on, and store those that leave the group."""
        for component, text in enumerate(texts, start=first):
            name = f"{stage.name}_r{component}"
            frame.lines.add(f"{name} = {text}")
            self.values.rows[stage.name, component] = name
            write = stage.writes[component] if component < len(stage.writes) else None
            if write is not None:
                self.values.store(write, name, frame)
        frame.results.add(stage.name)

    def _stored(self, stage: Stage, value: str, frame: Frame) -> None:
        if stage.writes[0] is not None:
            self.values.store(stage.writes[0], value, frame)
