"""The loops around the kernel: batches, slabs, blocks of N, K and M, panels; and finished sums' way out (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.emit.cpp.contraction_kernel import emit_kernel, kernel_name, padded, window_pitches
from synthesizer_svc.schedule.emit.cpp.contraction_pack import batch_names, emit_pack_a, emit_pack_b
from synthesizer_svc.schedule.emit.cpp.contraction_plan import Plan
from synthesizer_svc.schedule.emit.cpp.contraction_spec import Access, Lanes
from synthesizer_svc.schedule.emit.cpp.contraction_window import emit_copy, emit_pack_windows, window_copy_size


def emit_blocked(plan: Plan) -> str:
    """The contraction as a blocked loop nest over packed or direct panels."""
    kernels = [emit_kernel(plan, *shape) for shape in _kernel_shapes(plan)]
    return "\n\n".join(["\n".join(_buffers(plan)), *kernels, "\n".join(_function(plan))]) + "\n"


def _column_shapes(plan: Plan) -> list[tuple[int, int]]:
    """(vectors, lanes of the last that count or 0) of full and edge panels."""
    edge = plan.n % plan.nr
    shapes = [(plan.vectors, 0)] if plan.n >= plan.nr else []
    return shapes + ([(-(-edge // plan.lanes), edge % plan.lanes)] if edge else [])


def _row_shapes(plan: Plan) -> list[int]:
    edge = plan.spec.m % plan.mr
    return [plan.mr] + ([edge] if edge else [])


def _kernel_shapes(plan: Plan) -> list[tuple[int, int, int]]:
    return [(rows, *columns) for columns in _column_shapes(plan) for rows in _row_shapes(plan)]


def _buffers(plan: Plan) -> list[str]:
    """Per-thread work space, allocated once and kept."""
    room = plan.lanes * 2
    sizes = {
        "a": (_up(plan.spec.m, plan.mr) if plan.shared_a else plan.mc) * plan.kc if plan.pack_a else 0,
        "b": (_up(plan.spec.n, plan.nr) if plan.shared_b else plan.nc) * plan.kc if plan.pack_b else 0,
        "window": window_copy_size(plan),
        "sums": plan.slab * plan.nc if plan.uses_scratch else 0,
    }
    return [
        f"alignas(64) static thread_local {plan.type} {plan.name}_{what}[{size + room}];"
        for what, size in sizes.items()
        if size
    ]


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _function(plan: Plan) -> list[str]:
    t = plan.type
    extra = "".join(f", {p}" for p in plan.params)
    lines = [f"static void {plan.name}(const {t}* A, const {t}* B, [[maybe_unused]] {t}* C{extra}) {{"]
    if plan.shared_a:
        lines += [f"  {t}* const shared_a = {plan.name}_a;", "  { const " + t + "* pA = A;"]
        lines += [*_indent(emit_pack_a(plan), 2), f"    pack_a(shared_a, 0, {plan.spec.m}, 0, {plan.spec.k}); }}"]
    if plan.shared_b:
        lines += [f"  {t}* const shared_b = {plan.name}_b;", "  { const " + t + "* pB = B;"]
        lines += [*_indent(emit_pack_b(plan), 2), f"    pack_b(shared_b, 0, {plan.spec.k}, 0, {plan.spec.n}); }}"]
    lines += _parallel(plan, "batch", plan.batches)
    lines.append(f"  for (int64_t batch = 0; batch < {plan.batches}; ++batch) {{")
    lines += _indent(_batch_indices(plan), 2)
    lines += _indent(_slabs(plan), 2)
    return [*lines, "  }", "}"]


def _indent(lines: list[str], depth: int) -> list[str]:
    return [("  " * depth) + line for line in lines]


def _parallel(plan: Plan, axis: str, iterations: int) -> list[str]:
    if plan.parallel != axis or iterations < 2:
        return []
    return [f"  #pragma omp parallel for schedule(static) num_threads({min(plan.threads, iterations)})"]


def _batch_indices(plan: Plan) -> list[str]:
    lines, below = [], plan.batches
    for name, extent in zip(batch_names(plan), plan.spec.batch, strict=True):
        below //= extent
        lines.append(f"[[maybe_unused]] const int64_t {name} = batch / {below} % {extent};")
    for pointer, base, access in (("pA", "A", plan.spec.a), ("pB", "B", plan.spec.b)):
        lines.append(f"[[maybe_unused]] const {plan.type}* const {pointer} = {base}{_batch_offset(plan, access)};")
    if plan.epilogue is None:
        lines.append(f"{plan.type}* const pC = C{_batch_offset(plan, plan.spec.c)};")
    return lines


def _batch_offset(plan: Plan, access: Access) -> str:
    return "".join(f" + {n} * {s}" for n, s in zip(batch_names(plan), access.batch, strict=True) if s)


def _slabs(plan: Plan) -> list[str]:
    m, slab = plan.spec.m, plan.slab
    lines = _parallel(plan, "m", -(-m // slab))
    lines.append(f"for (int64_t slab = 0; slab < {m}; slab += {slab}) {{")
    lines.append(f"  const int64_t slab_end = slab + {slab} < {m} ? slab + {slab} : {m};")
    body = _window_source(plan) if plan.spec.window else []
    if plan.pack_a and not plan.shared_a:
        body += emit_pack_a(plan)
    if plan.pack_b and not plan.shared_b:
        body += emit_pack_windows(plan) if plan.spec.window else emit_pack_b(plan)
    if not plan.plain:
        body += _finish(plan)
    body += _rows_of_positions(plan)
    return [*lines, *_indent(body, 1), "}"]


def _window_source(plan: Plan) -> list[str]:
    if not padded(plan):
        return [f"const {plan.type}* const window = pB;"]
    copy = emit_copy(plan)
    return [f"{plan.type}* const padded = {plan.name}_window;", *copy, f"const {plan.type}* const window = padded;"]


def _rows_of_positions(plan: Plan) -> list[str]:
    """Outer output axes of a window that is read in place, around the blocks of N."""
    window = plan.direct_window
    if window is None:
        return ["constexpr int64_t first = 0;", *_blocks_of_n(plan)]
    pitch = window_pitches(plan)
    lines, first, source = [], "0", "window"
    for i, axis in enumerate(window.axes[:-1]):
        lines.append(f"for (int64_t o{i} = 0; o{i} < {axis.out}; ++o{i})")
        first = f"({first} + o{i}) * {window.axes[i + 1].out}"
        source += f" + o{i} * {axis.step * pitch[i + 1]}"
    lines += ["{", f"  const int64_t first = {first};", f"  const {plan.type}* const source = {source};"]
    return [*lines, *_indent(_blocks_of_n(plan), 1), "}"]


def _blocks_of_n(plan: Plan) -> list[str]:
    t, n, k = plan.type, plan.n, plan.spec.k
    lines = _parallel(plan, "n", -(-n // plan.nc))
    lines.append(f"for (int64_t jc = 0; jc < {n}; jc += {plan.nc}) {{")
    lines.append(f"  [[maybe_unused]] const int64_t nc = jc + {plan.nc} < {n} ? {plan.nc} : {n} - jc;")
    if plan.uses_scratch:
        lines.append(f"  {t}* const sums = {plan.name}_sums;")
    lines.append(f"  for (int64_t pc = 0; pc < {k}; pc += {plan.kc}) {{")
    lines.append(f"    [[maybe_unused]] const int64_t depth = pc + {plan.kc} < {k} ? {plan.kc} : {k} - pc;")
    if plan.pack_b and not plan.shared_b:
        lines += [f"    {t}* const packed_b = {plan.name}_b;", "    pack_b(packed_b, pc, depth, jc, nc);"]
    lines += _indent(_blocks_of_m(plan), 2)
    return [*lines, "  }", "}"]


def _blocks_of_m(plan: Plan) -> list[str]:
    t = plan.type
    lines = [f"for (int64_t ic = slab; ic < slab_end; ic += {plan.mc}) {{"]
    lines.append(f"  const int64_t mc = ic + {plan.mc} < slab_end ? {plan.mc} : slab_end - ic;")
    if plan.pack_a and not plan.shared_a:
        lines += [f"  {t}* const packed_a = {plan.name}_a;", "  pack_a(packed_a, ic, mc, pc, depth);"]
    if plan.n >= plan.nr:
        lines.append(f"  for (int64_t jr = 0; jr + {plan.nr} <= nc; jr += {plan.nr}) {{")
        lines += [*_indent(_panel(plan, plan.vectors, 0), 2), "  }"]
    edge = plan.n % plan.nr
    if edge:
        lines += [f"  if (nc % {plan.nr} != 0) {{", f"    const int64_t jr = nc - {edge};"]
        lines += [*_indent(_panel(plan, -(-edge // plan.lanes), edge % plan.lanes), 2), "  }"]
    return [*lines, "}"]


def _panel(plan: Plan, vectors: int, tail: int) -> list[str]:
    """All tiles of one panel of B."""
    if plan.shared_b:
        source = f"shared_b + (jc + jr) * {plan.spec.k}"
    elif plan.pack_b:
        source = "packed_b + jr * depth"
    else:
        source = "source + jc + jr" if plan.spec.window else f"pB + pc * {plan.spec.b.row} + jc + jr"
    lines = [f"const {plan.type}* const b = {source};"]
    lines += [f"for (int64_t ir = 0; ir + {plan.mr} <= mc; ir += {plan.mr}) {{"]
    lines += [*_indent(_tile(plan, plan.mr, vectors, tail), 1), "}"]
    edge = plan.spec.m % plan.mr
    if edge:
        lines += [f"if (mc % {plan.mr} != 0) {{", f"  const int64_t ir = mc - {edge};"]
        lines += [*_indent(_tile(plan, edge, vectors, tail), 1), "}"]
    return lines


def _tile(plan: Plan, rows: int, vectors: int, tail: int) -> list[str]:
    a, c = plan.spec.a, plan.spec.c
    if plan.shared_a:
        source = f"shared_a + (ic + ir) * {plan.spec.k}"
    elif plan.pack_a:
        source = "packed_a + ir * depth"
    else:
        source = f"pA + (ic + ir) * {a.row} + pc * {a.col}"
    kernel, add = kernel_name(plan, rows, vectors, tail), "pc > 0" if plan.k_split else "false"
    if plan.plain:
        return [f"{kernel}({source}, b, pC + (ic + ir) * {c.row} + first + jc + jr, depth, {add});"]
    lines = []
    if plan.uses_scratch:
        lines.append(f"{plan.type}* const tile = sums + (ic + ir - slab) * {plan.nc} + jr;")
    else:
        lines.append(f"alignas(64) {plan.type} tile[{rows * plan.nr}];")
    lines.append(f"{kernel}({source}, b, tile, depth, {add});")
    done = f"if (pc + depth == {plan.spec.k}) " if plan.k_split else ""
    full = vectors - 1 if tail else vectors
    return [*lines, f"{done}finish(tile, ic + ir, {rows}, first + jc + jr, {full}, {tail});"]


def _finish(plan: Plan) -> list[str]:
    """The lambda that hands a tile of finished sums to the epilogue, vector by vector."""
    lines = [
        f"const auto finish = [&](const {plan.type}* tile, int64_t row0, int rows, int64_t col0, int full, int tail) {{"
    ]
    lines += ["  (void)tail;"]
    lines += [f"  for (int r = 0; r < rows; ++r, tile += {plan.ldc}) {{", "    const int64_t row = row0 + r;"]
    lines += ["    int64_t col = col0;", f"    for (int v = 0; v < full; ++v, col += {plan.lanes}) {{"]
    lines += [_epilogue(plan, f"ke_load(tile + v * {plan.lanes})", None), "    }"]
    if any(tail for _, tail in _column_shapes(plan)):
        lines += ["    if (tail) {", _epilogue(plan, f"ke_load(tile + full * {plan.lanes})", "tail"), "    }"]
    return [*lines, "  }", "};"]


def _epilogue(plan: Plan, value: str, count: str | None) -> str:
    if plan.epilogue is not None:
        where = Lanes(value=value, batch=batch_names(plan), row="row", col="col", axis="col", count=count)
        return plan.epilogue(where)
    c = plan.spec.c
    return f"ke_store_strided(pC + row * {c.row} + col * {c.col}, {c.col}, {value}{', ' + count if count else ''});"
