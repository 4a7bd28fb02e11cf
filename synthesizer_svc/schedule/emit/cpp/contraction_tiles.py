"""Which register tiles fit an instruction set, and which one to begin with (pure)."""

from __future__ import annotations

from shared.chips import Isa
from synthesizer_svc.schedule.emit.cpp.contraction_plan import lanes
from synthesizer_svc.schedule.emit.cpp.contraction_spec import ContractionSpec

_SHAPES = {
    32: (
        *((28, 1), (24, 1), (16, 1), (12, 1), (8, 1)),
        *((14, 2), (12, 2), (10, 2), (8, 2)),
        *((9, 3), (8, 3), (6, 3)),
        *((6, 4), (5, 4), (4, 4), (5, 5), (4, 6)),
    ),
    16: ((12, 1), (8, 1), (6, 1), (6, 2), (5, 2), (4, 2), (4, 3), (3, 3), (2, 4)),
}
"""(rows, vectors) by number of registers; ``fits`` holds for each."""


def fits(rows: int, vectors: int, registers: int) -> bool:
    """Sums, one row of B and one element of A fit into the registers."""
    return rows * vectors + vectors + 1 <= registers


def tiles(spec: ContractionSpec, isa: Isa) -> tuple[str, ...]:
    """Legal tiles ``"rows x columns"``, rows no more than M needs; never empty."""
    width = lanes(spec, isa)
    shapes = [s for s in _SHAPES[isa.registers] if s[0] <= spec.m]
    if spec.m < 8:
        widest = min((isa.registers - 1) // (spec.m + 1), 8)
        shapes += [(spec.m, v) for v in range(1, widest + 1) if (spec.m, v) not in shapes]
    needed = -(-spec.n // width)
    shapes = [s for s in shapes if s[1] <= max(needed, 1)] or [(1, 1)]
    return tuple(f"{r}x{v * width}" for r, v in sorted(shapes, key=lambda s: (s[1], s[0])))


def window_rows_fill_vectors(spec: ContractionSpec, isa: Isa) -> bool:
    """The innermost output positions are neighbours, and reading each row of them in place wastes few lanes."""
    if spec.window is None or spec.window.axes[-1].step != 1:
        return False
    out, width = spec.window.axes[-1].out, lanes(spec, isa)
    return len(spec.window.axes) == 1 or out >= 0.85 * (-(-out // width) * width)


def default_tile(spec: ContractionSpec, isa: Isa) -> str:
    """The tile whose tiles cover M by N with the least waste, weighted by the loads it needs per multiply-add."""
    width = lanes(spec, isa)
    in_place = spec.window is not None and window_rows_fill_vectors(spec, isa)
    sweep = spec.window.axes[-1].out if spec.window is not None and in_place else spec.n

    def cost(tile: str) -> tuple[float, str]:
        rows, columns = (int(part) for part in tile.split("x"))
        vectors = columns // width
        return (_covering(spec.m, rows, sweep, vectors, width), tile)

    return min(tiles(spec, isa), key=cost)


def _covering(m: int, rows: int, n: int, vectors: int, width: int) -> float:
    """Estimated cycles per step of K over the whole output: the larger of multiply-adds (one a cycle, at least four
    to cover their latency) and loads (two a cycle), for every full and edge tile.
    """
    total_vectors = -(-n // width)
    total = 0.0
    for r, count_r in ((rows, m // rows), (m % rows, 1)):
        for v, count_v in ((vectors, total_vectors // vectors), (total_vectors % vectors, 1)):
            if r and v:
                total += count_r * count_v * max(r * v, 4.0, (r + 2.0 * v) / 1.5)
    return total * (1 + 0.1 / rows + 0.05 / vectors)
