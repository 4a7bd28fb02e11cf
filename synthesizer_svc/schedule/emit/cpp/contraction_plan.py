"""How one contraction is blocked: sizes that follow from a specification and the choices made for it (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from shared.chips import Isa
from shared.dtypes import DType
from synthesizer_svc.schedule.emit.cpp.contraction_spec import ContractionSpec, Epilogue, Prologue, Window
from synthesizer_svc.schedule.schedule import Value

SHARED_PACK_LIMIT = 1 << 20
"""Elements of an operand shared by all batches that are packed at once, before the batches (4 MiB of float32)."""

SCRATCH_LIMIT = 1 << 21
"""Elements of unfinished sums kept while K is split (8 MiB of float32); larger outputs are cut into slabs of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A specification with every open choice settled. Sizes are in elements; ``nr`` is ``vectors * lanes``."""

    spec: ContractionSpec
    isa: Isa
    threads: int
    name: str
    params: tuple[str, ...]
    mr: int
    vectors: int
    kc: int
    mc: int
    nc: int
    unroll: int
    prefetch: int
    pack_a: bool
    pack_b: bool
    parallel: str
    algorithm: str
    prologue_a: Prologue | None
    prologue_b: Prologue | None
    epilogue: Epilogue | None

    @property
    def type(self) -> str:
        return self.spec.dtype.c_type

    @property
    def vector(self) -> str:
        return "vf" if self.spec.dtype is DType.F32 else "vd"

    @property
    def lanes(self) -> int:
        return lanes(self.spec, self.isa)

    @property
    def nr(self) -> int:
        return self.vectors * self.lanes

    @property
    def batches(self) -> int:
        return prod(self.spec.batch)

    @property
    def direct_window(self) -> Window | None:
        """The window whose rows the kernel reads in place, if it does."""
        return None if self.pack_b else self.spec.window

    @property
    def n(self) -> int:
        """Columns of one sweep of the loops: a whole row of C, or one row of output positions."""
        return self.direct_window.axes[-1].out if self.direct_window else self.spec.n

    @property
    def k_split(self) -> bool:
        return self.kc < self.spec.k

    @property
    def plain(self) -> bool:
        """The kernel stores into C by itself."""
        return self.epilogue is None and self.spec.c.col == 1

    @property
    def uses_scratch(self) -> bool:
        return self.k_split and not self.plain

    @property
    def ldc(self) -> int:
        """Distance of rows in what the kernel writes: C, unfinished sums, or one tile."""
        if self.plain:
            return self.spec.c.row
        return self.nc if self.uses_scratch else self.nr

    @property
    def slab(self) -> int:
        """Rows of one slab, a multiple of ``mr`` unless it is all of M."""
        rows = self.spec.m
        if self.parallel == "m":
            rows = _ceil_to(-(-rows // self.threads), self.mr)
        if self.uses_scratch and rows * self.nc > SCRATCH_LIMIT:
            rows = min(rows, max(self.mr, SCRATCH_LIMIT // self.nc // self.mr * self.mr))
        return min(rows, self.spec.m)

    @property
    def shared_a(self) -> bool:
        """A is the same in all batches and is packed once."""
        return self._shared(self.pack_a, self.spec.a.batch, self.spec.m)

    @property
    def shared_b(self) -> bool:
        return self._shared(self.pack_b, self.spec.b.batch, self.spec.n) and self.spec.window is None

    def _shared(self, packed: bool, strides: tuple[int, ...], extent: int) -> bool:
        callback = self.prologue_a if strides is self.spec.a.batch else self.prologue_b
        fits = extent * self.spec.k <= SHARED_PACK_LIMIT and not self.k_split
        return packed and callback is None and self.batches > 1 and not any(strides) and fits


def lanes(spec: ContractionSpec, isa: Isa) -> int:
    """Elements in one vector."""
    return isa.vector_bits // 8 // spec.dtype.itemsize


def _ceil_to(value: int, step: int) -> int:
    return -(-value // step) * step


def _even_part(extent: int, limit: int) -> int:
    """``extent`` in as few parts of at most ``limit`` as possible, all about equal: the size of one part."""
    parts = -(-extent // limit)
    return min(_ceil_to(-(-extent // parts), 8), extent, limit)


def settle(
    spec: ContractionSpec,
    choices: Mapping[str, Value],
    isa: Isa,
    threads: int,
    name: str,
    params: tuple[str, ...],
    prologue_a: Prologue | None,
    prologue_b: Prologue | None,
    epilogue: Epilogue | None,
) -> Plan:
    """The plan of ``choices``, all decisions being present (see ``contraction.complete_choices``).

    A prologue needs packing, and so does a windowed operand with one (its padding must stay zero).
    """
    mr, nr = (int(part) for part in str(choices["tile"]).split("x"))
    width = lanes(spec, isa)
    pack_b = choices["pack_b"] == "yes" or (prologue_b is not None and spec.window is None)
    kc = spec.k if spec.window is not None and not pack_b else _even_part(spec.k, int(choices["kc"]))
    inner = spec.window.axes[-1].out if spec.window and not pack_b else spec.n
    parallel = str(choices["parallel"]) if threads > 1 else "none"
    nc = min(_ceil_to(int(choices["nc"]), nr), _ceil_to(inner, nr))
    if parallel == "n":
        nc = min(nc, _ceil_to(-(-inner // threads), nr))
    return Plan(
        spec=spec, isa=isa, threads=threads, name=name, params=params, mr=min(mr, spec.m), vectors=nr // width, kc=kc,
        mc=min(_ceil_to(int(choices["mc"]), min(mr, spec.m)), _ceil_to(spec.m, min(mr, spec.m))), nc=nc,
        unroll=int(choices["unroll"]), prefetch=int(choices["prefetch"]),
        pack_a=choices["pack_a"] == "yes" or prologue_a is not None, pack_b=pack_b, parallel=parallel,
        algorithm=str(choices["algorithm"]), prologue_a=prologue_a, prologue_b=prologue_b, epilogue=epilogue,
    )  # fmt: skip
