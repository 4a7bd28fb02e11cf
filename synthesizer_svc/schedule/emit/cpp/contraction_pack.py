"""Packing of operands into the panels that the kernel reads in order (pure).

A panel of A holds ``mr`` rows, k by k; a panel of B ``nr`` columns, k by k. Prologues are applied here, once per
element. Panels are written in ascending order with whole vectors, whose surplus lanes the next store overwrites; the
buffers have room for the last one's.
"""

from __future__ import annotations

from collections.abc import Callable

from synthesizer_svc.schedule.emit.cpp.contraction_plan import Plan
from synthesizer_svc.schedule.emit.cpp.contraction_spec import Lanes, Prologue

Load = Callable[[str, str, str | None], str]
"""(row index, column index, count) -> expression of the transformed vector that starts there."""


def batch_names(plan: Plan) -> tuple[str, ...]:
    return tuple(f"b{i}" for i in range(len(plan.spec.batch)))


def _loader(plan: Plan, pointer: str, row: int, col: int, axis: str, prologue: Prologue | None) -> Load:
    """Loads vectors of an affine operand along ``axis`` and applies its prologue."""
    step = row if axis == "row" else col

    def load(i: str, j: str, count: str | None) -> str:
        address = f"{pointer} + ({i}) * {row} + ({j}) * {col}"
        if step == 1:
            value = f"ke_load_part({address}, {count})" if count else f"ke_load({address})"
        elif step == 0:
            value = f"ke_set1(*({address}))"
        else:
            value = f"ke_load_strided({address}, {step}{', ' + count if count else ''})"
        if prologue is None:
            return value
        where = "row" if axis == "row" else "col"
        return prologue(Lanes(value=value, batch=batch_names(plan), row=i, col=j, axis=where, count=count))  # type: ignore[arg-type]

    return load


def emit_pack_a(plan: Plan) -> list[str]:
    """The lambda ``pack_a(to, ic, mc, pc, depth)``: rows ``ic ... ic+mc`` of ``pA``, k from ``pc`` on."""
    edge = plan.spec.m % plan.mr
    lines = [f"const auto pack_a = [&]({plan.type}* to, int64_t ic, int64_t mc, int64_t pc, int64_t depth) {{"]
    lines += [f"  for (int64_t i = 0; i + {plan.mr} <= mc; i += {plan.mr}, to += {plan.mr} * depth) {{"]
    lines += ["    const int64_t row = ic + i;", *(f"    {s}" for s in _panel_a(plan, plan.mr)), "  }"]
    if edge:
        lines += [f"  if (mc % {plan.mr} != 0) {{", f"    const int64_t row = ic + mc - {edge};"]
        lines += [*(f"    {s}" for s in _panel_a(plan, edge)), "  }"]
    return [*lines, "};"]


def _panel_a(plan: Plan, rows: int) -> list[str]:
    a, w = plan.spec.a, plan.lanes
    groups = [(g, min(w, rows - g)) for g in range(0, rows, w)]
    if a.col == 1 and plan.spec.k >= w // 2:
        load = _loader(plan, "pA", a.row, a.col, "col", plan.prologue_a)
        lines = [
            f"for (int64_t k = 0; k < depth; k += {w}) {{",
            f"  const int count = depth - k < {w} ? (int)(depth - k) : {w};",
        ]
        for start, height in groups:
            whole = [f"r[{i}] = {load(f'row + {start + i}', 'pc + k', None)};" for i in range(height)]
            part = [f"r[{i}] = {load(f'row + {start + i}', 'pc + k', 'count')};" for i in range(height)]
            store = _store_group(f"to + (k + t) * {rows} + {start}", "r[t]", height, w, alone=len(groups) == 1)
            lines += [
                f"  {{ {plan.vector} r[{w}] = {{}};",
                f"    if (count == {w}) {{ " + " ".join(whole) + " }",
                "    else { " + " ".join(part) + " }",
                "    ke_transpose(r);",
                f"    if (count == {w}) {{",
                f'      _Pragma("GCC unroll {w}") for (int t = 0; t < {w}; ++t) {store}',
                "    } else {",
                f'      _Pragma("GCC unroll {w}") for (int t = 0; t < {w}; ++t) if (t < count) {store}',
                "    } }",
            ]
        return [*lines, "}"]
    load = _loader(plan, "pA", a.row, a.col, "row", plan.prologue_a)
    lines = ["for (int64_t k = 0; k < depth; ++k) {"]
    for start, height in groups:
        value = load(f"row + {start}", "pc + k", str(height) if height < w else None)
        lines.append(f"  ke_store(to + k * {rows} + {start}, {value});")
    return [*lines, "}"]


def _store_group(address: str, value: str, height: int, width: int, *, alone: bool) -> str:
    return (
        f"ke_store({address}, {value});"
        if alone or height == width
        else f"ke_store_part({address}, {value}, {height});"
    )


def emit_pack_b(plan: Plan) -> list[str]:
    """The lambda ``pack_b(to, pc, depth, jc, nc)``: columns ``jc ... jc+nc`` of ``pB``, k from ``pc`` on."""
    lines = [f"const auto pack_b = [&]({plan.type}* to, int64_t pc, int64_t depth, int64_t jc, int64_t nc) {{"]
    lines += [f"  for (int64_t j = 0; j + {plan.nr} <= nc; j += {plan.nr}, to += {plan.nr} * depth) {{"]
    lines += ["    const int64_t col = jc + j;", *(f"    {s}" for s in _panel_b(plan, plan.nr)), "  }"]
    edge = plan.spec.n % plan.nr
    if edge:
        lines += [f"  if (nc % {plan.nr} != 0) {{", f"    const int64_t col = jc + nc - {edge};"]
        lines += [*(f"    {s}" for s in _panel_b(plan, edge)), "  }"]
    return [*lines, "};"]


def _panel_b(plan: Plan, columns: int) -> list[str]:
    b, w = plan.spec.b, plan.lanes
    parts = [(v, min(w, columns - v)) for v in range(0, columns, w)]
    width = len(parts) * w
    if b.row == 1 and b.col != 1 and plan.spec.k >= w // 2:
        return _panel_b_transposed(plan, parts, width)
    load = _loader(plan, "pB", b.row, b.col, "col", plan.prologue_b)
    lines = ["for (int64_t k = 0; k < depth; ++k) {"]
    for start, count in parts:
        value = load("pc + k", f"col + {start}", str(count) if count < w else None)
        lines.append(f"  ke_store(to + k * {width} + {start}, {value});")
    return [*lines, "}"]


def _panel_b_transposed(plan: Plan, parts: list[tuple[int, int]], width: int) -> list[str]:
    b, w = plan.spec.b, plan.lanes
    load = _loader(plan, "pB", b.row, b.col, "row", plan.prologue_b)
    lines = [
        f"for (int64_t k = 0; k < depth; k += {w}) {{",
        f"  const int count = depth - k < {w} ? (int)(depth - k) : {w};",
    ]
    for start, columns in parts:
        whole = [f"r[{i}] = {load('pc + k', f'col + {start + i}', None)};" for i in range(columns)]
        part = [f"r[{i}] = {load('pc + k', f'col + {start + i}', 'count')};" for i in range(columns)]
        store = f"ke_store(to + (k + t) * {width} + {start}, r[t]);"
        lines += [
            f"  {{ {plan.vector} r[{w}] = {{}};",
            f"    if (count == {w}) {{ " + " ".join(whole) + " }",
            "    else { " + " ".join(part) + " }",
            "    ke_transpose(r);",
            f"    if (count == {w}) {{",
            f'      _Pragma("GCC unroll {w}") for (int t = 0; t < {w}; ++t) {store}',
            "    } else {",
            f'      _Pragma("GCC unroll {w}") for (int t = 0; t < {w}; ++t) if (t < count) {store}',
            "    } }",
        ]
    return [*lines, "}"]
