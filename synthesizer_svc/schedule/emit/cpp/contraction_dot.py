"""Contraction with vectors along K, for thin products whose operands both run along K (pure).

C is computed a few rows at a time: blocks of rows by columns of vector sums, each folded to one number at its end.
Finished rows are handed to the epilogue in vectors along n.
"""

from __future__ import annotations

from synthesizer_svc.schedule.emit.cpp.contraction_pack import batch_names
from synthesizer_svc.schedule.emit.cpp.contraction_plan import Plan
from synthesizer_svc.schedule.emit.cpp.contraction_spec import Access, Lanes


def emit_dot(plan: Plan) -> str:
    """The contraction as dot products along K (``a.col == 1 and b.row == 1``, no window)."""
    t, extra = plan.type, "".join(f", {p}" for p in plan.params)
    rows, columns = dot_tile(plan)
    lines = [
        f"alignas(64) static thread_local {t} {plan.name}_row[{rows * _pitch(plan)}];",
        "",
        f"static void {plan.name}(const {t}* A, const {t}* B, [[maybe_unused]] {t}* C{extra}) {{",
        *_parallel(plan, "batch", plan.batches),
        f"for (int64_t batch = 0; batch < {plan.batches}; ++batch) {{",
        *_batch(plan),
    ]
    lines += _parallel(plan, "m", -(-plan.spec.m // rows))
    lines += [f"for (int64_t i = 0; i < {plan.spec.m}; i += {rows}) {{", f"{t}* const sums = {plan.name}_row;"]
    if plan.spec.m % rows:
        edge = plan.spec.m % rows
        lines += [
            f"if (i + {rows} <= {plan.spec.m}) {{",
            *_rows(plan, rows, columns),
            "} else {",
            *_rows(plan, edge, columns),
            "}",
        ]
    else:
        lines += _rows(plan, rows, columns)
    return "\n".join([*lines, "}", "}", "}"]) + "\n"


def dot_tile(plan: Plan) -> tuple[int, int]:
    """(rows, columns) of sums held at once: at most 4 rows, and at most half of the registers."""
    rows = min(plan.spec.m, 4)
    return rows, max(1, min(plan.isa.registers // 2 // rows, 8, plan.spec.n))


def _pitch(plan: Plan) -> int:
    return -(-plan.spec.n // plan.lanes) * plan.lanes


def _parallel(plan: Plan, axis: str, iterations: int) -> list[str]:
    if plan.parallel != axis or iterations < 2:
        return []
    return [f"#pragma omp parallel for schedule(static) num_threads({min(plan.threads, iterations)})"]


def _batch(plan: Plan) -> list[str]:
    lines, below = [], plan.batches
    for name, extent in zip(batch_names(plan), plan.spec.batch, strict=True):
        below //= extent
        lines.append(f"[[maybe_unused]] const int64_t {name} = batch / {below} % {extent};")

    def offset(access: Access) -> str:
        return "".join(f" + {n} * {s}" for n, s in zip(batch_names(plan), access.batch, strict=True) if s)

    lines.append(f"const {plan.type}* const pA = A{offset(plan.spec.a)};")
    lines.append(f"const {plan.type}* const pB = B{offset(plan.spec.b)};")
    if plan.epilogue is None:
        lines.append(f"{plan.type}* const pC = C{offset(plan.spec.c)};")
    return lines


def _rows(plan: Plan, rows: int, columns: int) -> list[str]:
    """Sums of ``rows`` rows from ``i`` on over all of N, then their epilogue."""
    n = plan.spec.n
    lines = _parallel(plan, "n", n // columns) if plan.parallel == "n" else []
    lines += [f"for (int64_t j = 0; j + {columns} <= {n}; j += {columns}) {{", *_block(plan, rows, columns), "}"]
    if n % columns:
        lines += [f"{{ const int64_t j = {n - n % columns};", *_block(plan, rows, n % columns), "}"]
    lines += [
        f"for (int r = 0; r < {rows}; ++r) {{",
        "const int64_t row = i + r;",
        f"const {plan.type}* const done = sums + r * {_pitch(plan)};",
    ]
    tail = n % plan.lanes
    if n >= plan.lanes:
        lines += [f"for (int64_t col = 0; col + {plan.lanes} <= {n}; col += {plan.lanes}) {{", _finish(plan, None), "}"]
    if tail:
        lines += [f"{{ const int64_t col = {n - tail};", _finish(plan, str(tail)), "}"]
    return [*lines, "}"]


def _block(plan: Plan, rows: int, columns: int) -> list[str]:
    w, k = plan.lanes, plan.spec.k
    cells = [(r, c) for r in range(rows) for c in range(columns)]
    lines = [f"{plan.vector} " + ", ".join(f"s{r}_{c} = {{}}" for r, c in cells) + ";"]
    for count, head in (
        (0, f"for (int64_t k = 0; k + {w} <= {k}; k += {w}) {{"),
        (k % w, f"{{ const int64_t k = {k - k % w};"),
    ):
        if (count == 0 and k < w) or (count == 0 and head.startswith("{")):
            continue
        lines += [head, *_operands(plan, rows, columns, count)]
        lines += [f"s{r}_{c} = ke_fma(x{r}, y{c}, s{r}_{c});" for r, c in cells]
        lines.append("}")
    return lines + [f"sums[{r * _pitch(plan)} + j + {c}] = ke_hsum(s{r}_{c});" for r, c in cells]


def _operands(plan: Plan, rows: int, columns: int, count: int) -> list[str]:
    def load(address: str) -> str:
        return f"ke_load_part({address}, {count})" if count else f"ke_load({address})"

    part = str(count) if count else None
    lines = []
    for r in range(rows):
        value = load(f"pA + (i + {r}) * {plan.spec.a.row} + k")
        if plan.prologue_a:
            value = plan.prologue_a(
                Lanes(value=value, batch=batch_names(plan), row=f"(i + {r})", col="k", axis="col", count=part)
            )
        lines.append(f"const {plan.vector} x{r} = {value};")
    for c in range(columns):
        value = load(f"pB + (j + {c}) * {plan.spec.b.col} + k")
        if plan.prologue_b:
            value = plan.prologue_b(
                Lanes(value=value, batch=batch_names(plan), row="k", col=f"(j + {c})", axis="row", count=part)
            )
        lines.append(f"const {plan.vector} y{c} = {value};")
    return lines


def _finish(plan: Plan, count: str | None) -> str:
    value, c = "ke_load(done + col)", plan.spec.c
    if plan.epilogue is not None:
        where = Lanes(value=value, batch=batch_names(plan), row="row", col="col", axis="col", count=count)
        return plan.epilogue(where)
    target = f"pC + row * {c.row} + col * {c.col}"
    if c.col == 1:
        return f"ke_store_part({target}, {value}, {count});" if count else f"ke_store({target}, {value});"
    return f"ke_store_strided({target}, {c.col}, {value}{', ' + count if count else ''});"
