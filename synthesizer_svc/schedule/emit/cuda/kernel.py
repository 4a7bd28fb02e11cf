"""One group as one kernel: element by element, or rows that are folded by some threads each (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from shared.chips import Gpu
from synthesizer_svc.schedule.emit.cpp.text import Lines
from synthesizer_svc.schedule.emit.cuda import folds
from synthesizer_svc.schedule.emit.cuda.shape import BlockShape, shape_of, shared_entries
from synthesizer_svc.schedule.emit.cuda.types import SCALAR, written
from synthesizer_svc.schedule.emit.cuda.values import Frame, Values, aligned, unguarded
from synthesizer_svc.schedule.emit.triton.rows import buffers_of
from synthesizer_svc.schedule.emit.triton.types import blocks
from synthesizer_svc.schedule.emit.triton.values import is_wide
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan, Stage
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Value
from synthesizer_svc.schedule.stages import Pass, expanded, passes


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A ``__global__`` function and its launch; ``buffers`` are its arguments."""

    name: str
    text: str
    buffers: tuple[Buffer, ...]
    blocks: int
    threads: int


def emit_group(plan: Plan, group: Group, choices: Mapping[str, Value], gpu: Gpu) -> Kernel:
    """The kernel of ``group``. ``choices`` are complete for its space."""
    used = buffers_of(plan, group)
    shape = shape_of(plan, group, choices, gpu, wide=is_wide(used))
    writer = _Writer(group=group, shape=shape, choices=choices, used=used)
    return Kernel(
        name=group.name,
        text=writer.text(),
        buffers=tuple(b for b in used if b.kind != "temp"),
        blocks=shape.blocks,
        threads=shape.block_threads,
    )


@dataclass
class _Writer:
    group: Group
    shape: BlockShape
    choices: Mapping[str, Value]
    used: list[Buffer]
    values: Values = field(init=False)

    def __post_init__(self) -> None:
        self.values = Values(buffers={b.name: b for b in self.used}, wide=self.shape.wide)
        self.writes = {w.buffer for s in self.group.stages for w in s.writes if w is not None}

    def text(self) -> str:
        shape, kernel = self.shape, Frame()
        body = self._rows(kernel) if shape.layout.inner else self._elements(kernel)
        out = Lines()
        out.add(f"// {self.group.name}: {self.group.kind} of {self.group.rows} rows; {self._described()}")
        arguments = ", ".join(f"{self._pointer(b)} __restrict__ {b.name}" for b in self.used if b.kind != "temp")
        bounds = f"__launch_bounds__({shape.block_threads})"
        with out.block(f'extern "C" __global__ void {bounds} {self.group.name}({arguments})'):
            for buffer in self.used:
                if buffer.kind == "temp":
                    out.add(f"{self._pointer(buffer)} const {buffer.name} = {buffer.name}_memory;")
            out.extend(kernel.lines.lines)
            if shape.blocks < shape.tiles:
                head = f"for ({shape.position} tile = ke_block(); tile < {shape.tiles}; tile += {shape.blocks})"
                with out.block(head):
                    out.extend(body.lines)
            else:
                out.add(f"const {shape.position} tile = ke_block();")
                out.extend(body.lines)
        return out.text()

    def _pointer(self, buffer: Buffer) -> str:
        return f"{'' if buffer.name in self.writes else 'const '}{self.values.element(buffer.name)}*"

    def _described(self) -> str:
        shape = self.shape
        if not shape.layout.inner:
            return f"{shape.threads} threads, {shape.unroll} x {shape.width} elements each"
        how = "kept in registers" if shape.held else f"read in every pass, {shape.unroll} at once"
        side = ", neighbours are rows" if shape.across else ""
        return f"{shape.rows} rows by {shape.threads} threads, {shape.width} elements at once, {how}{side}"

    def _place(self, frame: Frame, axes: tuple[Axis, ...], flat: str) -> None:
        """Positions of ``axes`` from the row-major number ``flat`` over all of them."""
        for place, axis in enumerate(axes):
            below = prod(a.extent for a in axes[place + 1 :])
            text = f"{flat} / {below}" if below > 1 else flat
            if place > 0:
                text = f"{text} % {axis.extent}"
            if text == flat:
                self.values.spots[axis] = flat
                continue
            name = f"{flat}_{axis.name}"
            frame.lines.add(f"const {self.shape.position} {name} = {text};")
            self.values.spots[axis] = name

    # ------------------------------------------------------------------ element by element

    def _elements(self, kernel: Frame) -> Lines:
        shape, outer = self.shape, self.group.outer
        chunk = Frame(parent=kernel, axes=set(outer))
        self._place(chunk, outer, "c")
        stages = expanded(self.group, {**self.choices, "softmax_stats": "two_pass", "variance": "two_pass"})
        lanes = self._lanes(stages, chunk, outer, {})
        count = max(1, self.group.rows)
        units = count // shape.width
        out = Lines()
        with out.block(f"const auto at = [&](const {shape.position} i)", "};"):
            out.add(f"const {shape.position} c = {f'i * {shape.width}' if shape.width > 1 else 'i'};")
            out.extend(chunk.lines.lines)
            out.extend(lanes.lines)
        step = shape.threads * shape.unroll
        out.add(f"const {shape.position} first = tile * {step} + ke_thread();")
        each = f"for (int u = 0; u < {shape.unroll}; ++u)"
        whole = Lines()
        whole.add("#pragma unroll")
        whole.add(f"{each} at(first + u * {shape.threads});")
        if units % step == 0:
            out.extend(whole.lines)
            return out
        rest = f"if (first + u * {shape.threads} < {units}) at(first + u * {shape.threads});"
        if units > step:
            with out.block(f"if (tile < {units // step})"):
                out.extend(whole.lines)
            with out.block("else"):
                out.add(f"{each} {rest}")
        else:
            out.add("#pragma unroll")
            out.add(f"{each} {rest}")
        return out

    # ------------------------------------------------------------------ rows

    def _rows(self, kernel: Frame) -> Lines:
        shape, group = self.shape, self.group
        choices = dict(self.choices)
        if shape.held:
            choices |= {"softmax_stats": "two_pass", "variance": "two_pass"}
        stages = expanded(group, choices)
        row = Frame(parent=kernel, axes=set(group.outer), results={s.name for s in stages})
        thread = "ke_thread()"
        if shape.across:
            split = f"const int r = {thread} % {shape.rows}, t = {thread} / {shape.rows};"
        else:
            split = f"const int r = {thread} / {shape.threads}, t = {thread} % {shape.threads};"
        kernel.lines.add(split)
        ragged = group.rows % shape.rows != 0
        number = f"tile * {shape.rows} + r" if shape.rows > 1 else "tile"
        row.lines.add(f"const {shape.position} own = {number};")
        row.lines.add(f"const bool live = {f'own < {group.rows}' if ragged else 'true'};")
        # Threads without a row of their own go through the last one: they have to come to every barrier.
        row.lines.add(f"const {shape.position} n = {f'live ? own : {group.rows - 1}' if ragged else 'own'};")
        self._place(row, shape.layout.rows, "n")
        if shape.blocks < shape.tiles:
            row.lines.add("ke_barrier();")  # shared memory of the tile before has been read
        loops = passes(stages)
        if shape.held:
            self._hold(loops, row)
        for loop in loops:
            if loop.stages:
                self._pass(loop, kernel, row)
            for stage in loop.after:
                self._results(stage, (self.values.value(stage.exprs[0], row),), row)
        return row.lines

    def _hold(self, loops: tuple[Pass, ...], row: Frame) -> None:
        """Read what every pass needs of the row, once."""
        shape, values = self.shape, self.values
        inner = next(loop.inner for loop in loops if loop.stages)
        chunk = Frame(parent=row, axes=set(inner))
        self._place(chunk, inner, "c")
        exprs = [e for loop in loops for s in loop.stages for e in s.exprs]
        steps = self._steps(inner)
        for load in unguarded(*exprs):
            if not self._together(load, inner):
                continue
            buffer, (offset,), _ = load.attr
            name = values.fresh("x")
            row.lines.add(f"KeVec<{values.element(buffer)}, {shape.width}> {name}[{steps}];")
            chunk.lines.add(f"{name}[k] = ke_load<{shape.width}>({buffer} + {values.index_text(offset, chunk)});")
            values.vectors[load] = f"{name}[k][{'j' if shape.width > 1 else '0'}]"
        if values.vectors:
            self._loop(row, inner, chunk.lines)

    def _together(self, load: Expr, inner: tuple[Axis, ...]) -> bool:
        buffer, (offset,), _ = load.attr
        if not set(inner) & set(load.axes):
            return False
        if self.shape.width == 1:
            return True
        return aligned(offset, inner[-1], self.shape.width, self.values.buffers[buffer].dtype.itemsize)

    def _steps(self, inner: tuple[Axis, ...]) -> int:
        return blocks(prod(a.extent for a in inner), self.shape.threads * self.shape.width)

    def _loop(self, frame: Frame, inner: tuple[Axis, ...], body: Lines) -> None:
        """``body`` for every chunk of this thread's; ``c`` is the first position of one."""
        shape, extent = self.shape, prod(a.extent for a in inner)
        each, lines = shape.threads * shape.width, frame.lines
        first = "t" if shape.width == 1 else f"t * {shape.width}"
        if not shape.held:
            lines.add(f"#pragma unroll {shape.unroll}")
            head = f"for ({shape.position} c = {first}; c < {extent}; c += {each})"
            with lines.block(head):
                lines.extend(body.lines)
            return
        steps, whole = self._steps(inner), extent % each == 0
        lines.add("#pragma unroll")
        with lines.block(f"for (int k = 0; k < {steps}; ++k)"):
            lines.add(f"const {shape.position} c = k * {each} + {first};")
            if whole:
                lines.extend(body.lines)
            else:
                with lines.block(f"if (k < {extent // each} || c < {extent})"):
                    lines.extend(body.lines)

    def _pass(self, loop: Pass, kernel: Frame, row: Frame) -> None:
        shape = self.shape
        for stage in loop.stages:
            if stage.kind == "reduce":
                row.lines.add(f"{folds.accumulator(stage)} {stage.name}_a = {folds.start(stage)};")
        chunk = Frame(parent=row, axes=set(loop.inner))
        self._place(chunk, loop.inner, "c")
        lanes = self._lanes(loop.stages, chunk, loop.inner, self.values.vectors if shape.held else {})
        body = Lines()
        body.extend(chunk.lines.lines)
        body.extend(lanes.lines)
        self._loop(row, loop.inner, body)
        for stage in loop.stages:
            if stage.kind == "reduce":
                self._folded(stage, kernel, row)

    def _folded(self, stage: Stage, kernel: Frame, row: Frame) -> None:
        """Join what the threads of a row hold."""
        shape, name, kind = self.shape, f"{stage.name}_f", folds.accumulator(stage)
        entries = shared_entries(shape.rows, shape.threads, across=shape.across)
        shared = f"({kind}*)0"
        if entries:
            shared = f"{stage.name}_s"
            kernel.lines.add(f"__shared__ {kind} {shared}[{entries}];")
        side = "true" if shape.across else "false"
        fold = f"ke_fold<{shape.threads}, {shape.rows}, {side}>({stage.name}_a, {shared}, t, r)"
        row.lines.add(f"const {kind} {name} = {fold};")
        self._results(stage, folds.results(stage, name), row)

    def _results(self, stage: Stage, texts: tuple[str, ...], row: Frame) -> None:
        """Name the results of a row, and store those that leave the group."""
        for component, text in enumerate(texts):
            name = f"{stage.name}_r{component}"
            row.lines.add(f"const {SCALAR[stage.dtype]} {name} = {text};")
            self.values.rows[stage.name, component] = name
            write = stage.writes[component] if component < len(stage.writes) else None
            if write is not None:
                row.lines.add(f"if (t == 0 && live) {self.values.store(write, name, stage.dtype, row)}")

    # ------------------------------------------------------------------ chunks

    def _lanes(self, stages: tuple[Stage, ...], chunk: Frame, axes: tuple[Axis, ...], held: dict[Expr, str]) -> Lines:
        """Statements of one chunk after those that all its lanes share, which go to ``chunk``."""
        shape, values, width = self.shape, self.values, self.shape.width
        axis = axes[-1] if axes else None
        base = {axis: values.spots[axis]} if axis is not None else {}
        values.vectors = dict(held)
        lane = Frame(parent=chunk, axes={axis} if axis is not None else set())
        chunk.axes = chunk.axes - lane.axes if width > 1 else chunk.axes
        if width > 1 and axis is not None:
            for load in unguarded(*(e for s in stages for e in s.exprs)):
                buffer, (offset,), _ = load.attr
                if load not in held and aligned(offset, axis, width, values.buffers[buffer].dtype.itemsize):
                    name = values.fresh("x")
                    spot = values.index_text(offset, chunk, base=base)
                    chunk.lines.add(f"const auto {name} = ke_load<{width}>({buffer} + {spot});")
                    values.vectors[load] = f"{name}[j]"
            values.spots[axis] = f"({base[axis]} + j)"
        out = Lines()
        after: list[str] = []
        for stage in stages:
            self._lane(stage, lane, axis, base, out, after)
        if width > 1:
            out.add("#pragma unroll")
            with out.block(f"for (int j = 0; j < {width}; ++j)"):
                out.extend(lane.lines.lines)
        else:
            out.extend(lane.lines.lines)
        out.extend(after)
        if axis is not None:
            values.spots[axis] = base[axis]
        if shape.held:
            values.vectors = dict(held)
        return out

    def _lane(
        self, stage: Stage, lane: Frame, axis: Axis | None, base: dict[Axis, str], out: Lines, after: list[str]
    ) -> None:
        values, width = self.values, self.shape.width
        x = values.value(stage.exprs[0], lane)
        if stage.kind == "reduce" and not self.shape.layout.inner:
            x = self._of_one(stage, x, lane)
        elif stage.kind == "reduce":
            position = f", {values.value(stage.exprs[1], lane)}" if folds.is_arg(stage) else ""
            lane.lines.add(f"{stage.name}_a.step({x}{position});")
            return
        if not self.shape.layout.inner:
            values.rows[stage.name, 0] = x
            lane.results.add(stage.name)
        write = stage.writes[0]
        if write is None:
            return
        live = "if (live) " if self.shape.layout.inner else ""
        memory = values.buffers[write.buffer].dtype
        dtype = stage.dtype if stage.kind == "reduce" else stage.exprs[0].dtype
        if width == 1 or not aligned(write.offset, axis, width, memory.itemsize):
            lane.lines.add(f"{live}{values.store(write, x, dtype, lane)}")
            return
        name = values.fresh("y")
        out.add(f"KeVec<{values.element(write.buffer)}, {width}> {name};")
        lane.lines.add(f"{name}[j] = {written(memory, x, dtype)};")
        place = values.index_text(write.offset, lane, base=base)
        after.append(f"{live}ke_store({write.buffer} + {place}, {name});")

    def _of_one(self, stage: Stage, x: str, lane: Frame) -> str:
        """The fold of a single element: rows of extent 1 have no loop."""
        name = f"{stage.name}_a"
        position = f", {self.values.value(stage.exprs[1], lane)}" if folds.is_arg(stage) else ""
        lane.lines.add(f"{folds.accumulator(stage)} {name} = {folds.start(stage)};")
        lane.lines.add(f"{name}.step({x}{position});")
        (result,) = folds.results(stage, name)
        return result
