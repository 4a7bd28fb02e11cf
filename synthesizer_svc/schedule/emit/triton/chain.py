"""Two products over the same batches: ``C (A B)`` by one kernel that keeps what is between them to itself (pure).

Under ``fused`` the first product is made tile by tile and multiplied at once. Under ``reassociated`` it is ``(C A) B``,
which is the same in exact arithmetic and less work where rows and inner sums are few: its intermediate is kept in
float32 and multiplied in TensorFloat-32, which rounds it no more than 16-bit memory would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from shared.chips import Gpu
from shared.events import Bound
from synthesizer_svc.schedule import bind
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.triton.matrix import Product, product_of
from synthesizer_svc.schedule.emit.triton.matrix_kernel import finished
from synthesizer_svc.schedule.emit.triton.positions import placed
from synthesizer_svc.schedule.emit.triton.spans import COLUMN, ROW, Span, factor
from synthesizer_svc.schedule.emit.triton.text import Lines
from synthesizer_svc.schedule.emit.triton.types import HALVES, TL, Kernel, blocks, power_of_two
from synthesizer_svc.schedule.emit.triton.values import Frame, Values
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Decision, Value

FUSED, REASSOCIATED, SEPARATE = "fused", "reassociated", "separate"
BATCHES_MIN = 2
SIDE_MAX = 128
"""Of rows and of inner sums, which a program holds whole."""
LEAST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """``second`` is ``C[z, r, p] T[z, p, q]`` and its T is ``sum over s of A[z, p, s] B[z, s, q]``, in its own axes."""

    first: str
    """The group of the first product."""
    between: str
    second: Product
    a: Expr
    b: Expr
    s: tuple[Axis, ...]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Of r, p, q and s."""
        r, q, p = self.second.sizes
        return r, p, q, prod(a.extent for a in self.s)

    @property
    def work(self) -> dict[str, int]:
        """Multiplications a batch, by order."""
        r, p, q, s = self.sizes
        return {FUSED: s * p * q + r * p * q, REASSOCIATED: r * s * p + r * s * q}


def chain_of(plan: Plan, place: int) -> Chain | None:
    """The chain of groups ``place`` and ``place + 1``, if they are one."""
    if place + 1 >= len(plan.groups):
        return None
    first, second = (product_of(plan, group) for group in plan.groups[place : place + 2])
    if first is None or second is None or first.epilogue or first.stage.writes[0] is None:
        return None
    write = first.stage.writes[0]
    buffer = plan.buffer(write.buffer)
    readers = [g for g in plan.groups if any(load.attr[0] == buffer.name for load in g.loads())]
    if buffer.kind != "temp" or readers != [second.group] or first.dtype is not second.dtype:
        return None
    if second.b.op != "load" or second.b.attr[0] != buffer.name:
        second = second.turned()
    if second.b.op != "load" or second.b.attr[0] != buffer.name or buffer.name in _read(second.a):
        return None
    numel = buffer.nbytes // buffer.dtype.itemsize
    written, read = (bind.digits(o, numel) for o in (write.offset, second.b.attr[1][0]))
    if written is None or read is None or [(s, a.extent) for s, a in written] != [(s, a.extent) for s, a in read]:
        return None
    same = {mine: theirs for (_, mine), (_, theirs) in zip(written, read, strict=True)}
    sides = [tuple(same[a] for a in axes) for axes in (first.z, first.m, first.n)]
    if sides[1] == second.n and sides[2] == second.k:
        first, sides = first.turned(), [sides[0], sides[2], sides[1]]
    if sides != [second.z, second.k, second.n]:
        return None
    axes = {mine: ix.of(theirs) for mine, theirs in same.items()}
    found = Chain(
        first=first.group.name,
        between=buffer.name,
        second=second,
        a=ex.rewrite(first.a, axes),
        b=ex.rewrite(first.b, axes),
        s=first.k,
    )
    r, _, _, s = found.sizes
    return found if second.batches >= BATCHES_MIN and max(r, s) <= SIDE_MAX else None


def _read(expr: Expr) -> set[str]:
    return {load.attr[0] for load in ex.loads(expr)}


def decisions(chain: Chain, gpu: Gpu) -> list[Decision]:
    """All decisions about the chain; they belong to its first group."""
    _, p, q, _ = chain.sizes
    work = chain.work
    order = REASSOCIATED if work[REASSOCIATED] < work[FUSED] else FUSED
    inner, width = max(LEAST, power_of_two(p)), max(LEAST, power_of_two(q))
    small = chain.second.dtype in HALVES

    def decision(name: str, values: tuple[Value, ...], default: Value, pays: tuple[Bound, ...], why: str) -> Decision:
        return Decision(group=chain.first, name=name, values=values, default=default, pays_when=pays, why=why)

    depths = tuple(v for v in (16, 32, 64, 128, 256) if v <= inner)
    widths = tuple(v for v in (16, 32, 64, 128, 256) if v <= width)
    most = gpu.threads_max // gpu.warp
    return [
        decision("chain", (REASSOCIATED, FUSED, SEPARATE), order, (Bound.MEMORY, Bound.COMPUTE),
                 "both products of a batch at once; the order with fewer multiplications; or through memory"),
        decision("chain_depth", depths, depths[-1] if small else min(64, depths[-1]), (Bound.LATENCY, Bound.OCCUPANCY),
                 "terms of the second sum that a program takes at a time"),
        decision("chain_width", widths, widths[-1] if small else min(64, widths[-1]), (Bound.LATENCY, Bound.OCCUPANCY),
                 "columns that a program takes at a time"),
        decision("chain_warps", tuple(w for w in (1, 2, 4, 8) if w <= most), 4, (Bound.LATENCY, Bound.OCCUPANCY),
                 "more warps share a batch"),
        decision("chain_stages", (1, 2, 3), 2, (Bound.LATENCY,), "tiles fetched ahead"),
        decision("chain_spread", (0, 1), 0, (Bound.OCCUPANCY, Bound.LATENCY),
                 "1 gives every tile of columns a program of its own; 0 gives a batch one"),
    ]  # fmt: skip


def emit_chain(
    chain: Chain, buffers: tuple[Buffer, ...], choices: Mapping[str, Value], gpu: Gpu, *, wide: bool
) -> Kernel:
    """The kernel of both products. ``choices`` are those of the first group, complete."""
    _, p, q, _ = chain.sizes
    depth = min(int(choices["chain_depth"]), max(LEAST, power_of_two(p)))
    width = min(int(choices["chain_width"]), max(LEAST, power_of_two(q)))
    across = blocks(q, width)
    spread = bool(choices.get("chain_spread")) and across > 1
    writer = _Writer(
        chain=chain,
        buffers={b.name: b for b in buffers},
        order=str(choices["chain"]),
        depth=depth,
        width=width,
        spread=spread,
        wide=wide,
        rounded=gpu.tensor_float32,
    )
    name = f"{chain.first}_{chain.second.group.name}"
    return Kernel(
        name=name,
        text=writer.text(name),
        buffers=tuple(writer.buffers),
        programs=chain.second.batches * (across if spread else 1),
        warps=int(choices["chain_warps"]),
        stages=int(choices["chain_stages"]),
    )


@dataclass
class _Writer:
    chain: Chain
    buffers: Mapping[str, Buffer]
    order: str
    depth: int
    width: int
    spread: bool
    wide: bool
    rounded: bool
    """Whether matrix units multiply TensorFloat-32."""
    batch: Values = field(init=False)
    r: Span = field(init=False)
    s: Span = field(init=False)
    p: Span = field(init=False)
    q: Span = field(init=False)

    def __post_init__(self) -> None:
        r, p, q, s = self.chain.sizes
        second = self.chain.second
        self.batch = Values(buffers=self.buffers, wide=self.wide)
        self.r = Span.whole("r", second.m, max(LEAST, power_of_two(r)))
        self.s = Span.whole("s", self.chain.s, max(LEAST, power_of_two(s)))
        self.p = Span(name="p", axes=second.k, size=self.depth, ragged=bool(p % self.depth))
        self.q = Span(name="q", axes=second.n, size=self.width, ragged=bool(q % self.width))

    def text(self, name: str) -> str:
        chain, out = self.chain, Lines()
        r, p, q, s = chain.sizes
        out.add(f"# {name}: {chain.second.batches} chains of {r} x {p} by ({p} x {s} by {s} x {q}), {self.order}")
        out.add("@triton.jit")
        with out.block(f"def {name}({', '.join(self.buffers)})"):
            out.add(f"pid = tl.program_id(0){'.to(tl.int64)' if self.wide else ''}")
            across = blocks(q, self.width)
            out.add(f"z = pid // {across}" if self.spread else "z = pid")
            base = Frame()
            placed(self.batch, base, chain.second.z, "z", "")
            out.extend(base.lines.lines)
            out.extend([*self.r.lines(), *self.s.lines()])
            if self.order == FUSED:
                self._columns(out)
            else:
                self._reassociated(out)
        return out.text()

    def _tile(self, out: Lines, expr: Expr, name: str, rows: Span, columns: Span, summed: tuple[Span, ...]) -> None:
        """Define ``name`` as a factor's tile."""
        values = Values(buffers=self.buffers, spots=dict(self.batch.spots), wide=self.wide, prefix=f"{name}_")
        frame = Frame()
        rows.place(values, frame, ROW, wide=self.wide)
        columns.place(values, frame, COLUMN, wide=self.wide)
        factor(values, frame, expr, self.chain.second.dtype, self.buffers, summed, name)
        out.extend(frame.lines.lines)

    @property
    def _precision(self) -> str:
        if self.chain.second.dtype in HALVES:
            return ""
        return f', input_precision="{"tf32x3" if self.rounded else "ieee"}"'

    def _head(self, out: Lines) -> str | None:
        """The loop over tiles of columns; None where a program has one tile."""
        q = self.chain.sizes[2]
        across = blocks(q, self.width)
        if self.spread:
            out.extend(self.q.lines(f"pid % {across} * {self.width}"))
            return None
        if across == 1:
            out.extend(self.q.lines())
            return None
        return f"for first in range(0, {q}, {self.width})"

    def _columns(self, out: Lines) -> None:
        """``C (A B)``: tiles of ``A B`` are multiplied as they come."""
        head = self._head(out)
        if head is None:
            self._fused(out)
            return
        with out.block(head):
            out.extend(self.q.lines("first"))
            self._fused(out)

    def _fused(self, out: Lines) -> None:
        chain, kind = self.chain, TL[self.chain.second.dtype]
        self._tile(out, chain.b, "b", self.s, self.q, (self.s,))
        out.add(f"acc = tl.zeros([{self.r.size}, {self.q.size}], tl.float32)")
        with out.block(f"for p in range(0, {chain.sizes[1]}, {self.depth})"):
            out.extend(self.p.lines("p"))
            self._tile(out, chain.a, "a", self.p, self.s, (self.p, self.s))
            out.add(f"t = tl.dot(a, b{self._precision}).to({kind})")
            self._tile(out, chain.second.a, "c", self.r, self.p, (self.p,))
            out.add(f"acc = tl.dot(c, t, acc{self._precision})")
        self._finish(out)

    def _reassociated(self, out: Lines) -> None:
        """``(C A) B``: the small product first, then all columns."""
        chain, head = self.chain, self._head(out)
        if head is None:
            self._tile(out, chain.b, "b", self.s, self.q, (self.s,))
        out.add(f"g = tl.zeros([{self.r.size}, {self.s.size}], tl.float32)")
        with out.block(f"for p in range(0, {chain.sizes[1]}, {self.depth})"):
            out.extend(self.p.lines("p"))
            self._tile(out, chain.second.a, "c", self.r, self.p, (self.p,))
            if self._symmetric():
                out.add("a = tl.trans(c)")
            else:
                self._tile(out, chain.a, "a", self.p, self.s, (self.p, self.s))
            out.add(f"g = tl.dot(c, a, g{self._precision})")
        if head is None:
            self._last(out)
            return
        with out.block(head):
            out.extend(self.q.lines("first"))
            self._tile(out, chain.b, "b", self.s, self.q, (self.s,))
            self._last(out)

    def _last(self, out: Lines) -> None:
        once = "tf32" if self.chain.second.dtype in HALVES else "tf32x3"
        precision = once if self.rounded else "ieee"
        out.add(f'acc = tl.dot(g, b.to(tl.float32), input_precision="{precision}")')
        self._finish(out)

    def _symmetric(self) -> bool:
        """Whether ``A`` is ``C`` with rows for inner sums: then one tile is both."""
        rows, inner = self.chain.second.m, self.chain.s
        if [a.extent for a in rows] != [a.extent for a in inner]:
            return False
        renamed = {mine: ix.of(theirs) for mine, theirs in zip(inner, rows, strict=True)}
        return ex.rewrite(self.chain.a, renamed) is self.chain.second.a

    def _finish(self, out: Lines) -> None:
        frame = Frame()
        values = Values(buffers=self.buffers, spots=dict(self.batch.spots), wide=self.wide, prefix="e_")
        self.r.place(values, frame, ROW, wide=self.wide)
        self.q.place(values, frame, COLUMN, wide=self.wide)
        finished(values, frame, self.chain.second, "acc")
        out.extend(frame.lines.lines)


def without(plan: Plan, chain: Chain) -> Plan:
    """``plan`` without the temporary between the two products."""
    return replace(plan, buffers=tuple(b for b in plan.buffers if b.name != chain.between))
