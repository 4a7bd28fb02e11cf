"""The contraction emitter's door: decisions of a contraction, and its C++ text under given choices (pure).

``emit_contraction`` returns C++17 text to be placed after ``vecmath.header``. It defines

    static void NAME(const T* A, const T* B, T* C [, PARAMS...])

with ``T`` = ``float`` or ``double``, and everything that function needs, all names prefixed by ``NAME_``. ``A``, ``B``,
``C`` point at element (0, ..., 0) of the operands (with a window, B at the unpadded input). ``C`` is not touched when
there is an epilogue (pass ``nullptr``). ``params`` are further parameter declarations
(``"const float* __restrict bias"``) that callbacks' text may name; their names must not be ``A B C pA pB pC window
padded source first slab tile sums row col`` or begin with ``NAME_``, ``ke_`` or a letter and digits only.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.chips import Isa
from shared.events import Bound
from synthesizer_svc.schedule.emit.cpp.contraction_blocked import emit_blocked
from synthesizer_svc.schedule.emit.cpp.contraction_dot import emit_dot
from synthesizer_svc.schedule.emit.cpp.contraction_plan import settle
from synthesizer_svc.schedule.emit.cpp.contraction_spec import ContractionSpec, Epilogue, Prologue
from synthesizer_svc.schedule.emit.cpp.contraction_tiles import default_tile, tiles, window_rows_fill_vectors
from synthesizer_svc.schedule.schedule import Decision, Value

_COMPUTE = (Bound.COMPUTE,)
_MEMORY = (Bound.MEMORY,)

IN_PLACE_LIMIT = 1 << 19
"""Elements up to which an operand is better read in place than packed (2 MiB of float32; measured on Zen 4)."""

MAX_DEPTH = 1024
"""Most products added one after the other. The error of a sum grows with the root of its length, and library kernels
add in parts: 512 at once make 1.7 times the library's error in float32, which is far below half of what the nearest
lower precision makes (the rule of the evaluator); twice as many change little in speed."""

WINDOW_DEPTH = 512
"""Deepest convolution whose windows are read in place: K of these is not split."""

PAGE = 4096
"""Rows that lie a multiple of this many bytes apart fall into the same sets of a first-level cache of 8 ways."""


def decisions(spec: ContractionSpec, isa: Isa, threads: int, group: str) -> tuple[Decision, ...]:
    """The open choices of a contraction of ``group``.

    Names: ``algorithm tile kc mc nc pack_a pack_b unroll prefetch parallel``. All legal combinations give the same
    sums up to rounding.
    """
    return (
        _algorithm(spec, group),
        _tile(spec, isa, group),
        *_blocks(spec, group),
        *_packing(spec, isa, group),
        _decide(group, "unroll", (1, 2, 4, 8), 4, _COMPUTE, "steps of K per loop turn: loop cost against code size"),
        _decide(group, "prefetch", (0, 8, 16, 32), 0, _MEMORY, "steps of K fetched ahead: latency against load slots"),
        _parallel(spec, threads, group),
    )


def _decide(
    group: str, name: str, values: tuple[Value, ...], default: Value, pays: tuple[Bound, ...], why: str
) -> Decision:
    return Decision(group=group, name=name, values=values, default=default, pays_when=pays, why=why)


def _algorithm(spec: ContractionSpec, group: str) -> Decision:
    along_k = spec.a.col == 1 and spec.b.row == 1 and spec.window is None
    values: tuple[Value, ...] = ("blocked", "dot") if along_k and min(spec.m, spec.n) <= 32 else ("blocked",)
    thin = along_k and min(spec.m, spec.n) <= 4 and spec.k >= 16
    why = "vectors along K need no packing of thin operands; vectors along N reuse registers"
    return _decide(group, "algorithm", values, "dot" if thin else "blocked", _MEMORY, why)


def _tile(spec: ContractionSpec, isa: Isa, group: str) -> Decision:
    why = "sums held in registers: taller reuses B more, wider reuses A more; must leave registers for operands"
    return _decide(group, "tile", tiles(spec, isa), default_tile(spec, isa), _COMPUTE, why)


def _up_to(values: tuple[int, ...], extent: int) -> tuple[Value, ...]:
    """The values below ``extent``, and the first that reaches it."""
    below = tuple(v for v in values if v < extent)
    return (*below, next((v for v in values if v >= extent), values[-1])) if len(below) < len(values) else values


def _blocks(spec: ContractionSpec, group: str) -> tuple[Decision, ...]:
    depths = (64, 128, 256, WINDOW_DEPTH) if spec.window else (128, 256, 384, 512, MAX_DEPTH)
    kc = _up_to(depths, spec.k)
    mc = _up_to((48, 96, 144, 192, 288, 384, 768), spec.m)
    nc = _up_to((128, 256, 512, 1024, 2048, 4096), spec.n)
    return (
        _decide(
            group,
            "kc",
            kc,
            _nearest(kc, 256 if spec.window else 512),
            _COMPUTE,
            "steps of K summed in registers: fewer passes over C against cache and rounding",
        ),
        _decide(group, "mc", mc, _nearest(mc, 192), _COMPUTE, "rows of A kept in the second-level cache"),
        _decide(group, "nc", nc, _nearest(nc, 2048), _MEMORY, "columns of B kept in the last-level cache"),
    )


def _nearest(values: tuple[Value, ...], wanted: int) -> Value:
    return min(values, key=lambda v: (abs(int(v) - wanted), int(v)))


def _packing(spec: ContractionSpec, isa: Isa, group: str) -> tuple[Decision, ...]:
    shallow = spec.k <= WINDOW_DEPTH
    direct_b = spec.window.axes[-1].step == 1 and shallow if spec.window else spec.b.col == 1
    b_in_place = (
        window_rows_fill_vectors(spec, isa) if spec.window else spec.n * spec.k <= IN_PLACE_LIMIT or spec.m <= 32
    )
    rows_collide = spec.m > 8 and spec.a.row * spec.dtype.itemsize % PAGE == 0
    a_small = spec.m * spec.k <= IN_PLACE_LIMIT or spec.n <= 64
    a_in_place = 1 in (spec.a.row, spec.a.col) and a_small and not rows_collide
    b_default = "no" if direct_b and b_in_place else "yes"
    a_default = "no" if a_in_place else "yes"
    return (
        _decide(group, "pack_a", ("yes", "no"), a_default, (), "copying A costs once; packed reads are in order"),
        _decide(
            group,
            "pack_b",
            ("yes", "no") if direct_b else ("yes",),
            b_default,
            (),
            "copying B costs once; packed reads are in order",
        ),
    )


def _parallel(spec: ContractionSpec, threads: int, group: str) -> Decision:
    if threads <= 1:
        return _decide(group, "parallel", ("none",), "none", (), "one thread")
    axes: list[Value] = ["m"] if spec.window else ["m", "n"]
    many = bool(spec.batch) and max(spec.batch) > 1
    values = ("batch", *axes) if many else tuple(axes)
    default = "batch" if many else ("m" if spec.window or spec.m >= spec.n else "n")
    return _decide(group, "parallel", values, default, (), "what is divided among threads")


def complete_choices(spec: ContractionSpec, choices: Mapping[str, Value], isa: Isa, threads: int) -> dict[str, Value]:
    """``choices`` by decision *name*, made legal: missing or illegal values replaced by the default."""
    known = decisions(spec, isa, threads, "")
    return {d.name: choices[d.name] if choices.get(d.name) in d.values else d.default for d in known}


def emit_contraction(
    spec: ContractionSpec,
    choices: Mapping[str, Value],
    isa: Isa,
    threads: int,
    *,
    prologue_a: Prologue | None = None,
    prologue_b: Prologue | None = None,
    epilogue: Epilogue | None = None,
    params: tuple[str, ...] = (),
    name: str,
) -> str:
    """C++ text of the contraction under ``choices`` (by decision name, without the group; see ``decisions``).

    ``isa.vector_bits`` must be the header's. With more than one thread the text uses OpenMP. The same arguments give
    the same text. Illegal or missing choices take their defaults.
    """
    legal = complete_choices(spec, choices, isa, threads)
    plan = settle(spec, legal, isa, threads, name, params, prologue_a, prologue_b, epilogue)
    return emit_dot(plan) if plan.algorithm == "dot" else emit_blocked(plan)
