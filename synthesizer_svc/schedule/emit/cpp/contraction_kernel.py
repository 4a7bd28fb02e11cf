"""The register-blocked kernel of a contraction: R rows by V vectors of sums, kept in registers over all of K (pure).

Every sum is a named variable and every step of K is written out, so that the compiler has nothing left to decide but
the order of instructions.
"""

from __future__ import annotations

from synthesizer_svc.schedule.emit.cpp.contraction_plan import Plan


def kernel_name(plan: Plan, rows: int, vectors: int, tail: int) -> str:
    return f"{plan.name}_kernel_{rows}x{vectors}" + (f"_{tail}" if tail else "")


def emit_kernel(plan: Plan, rows: int, vectors: int, tail: int) -> str:
    """C++ text of the kernel for a tile of ``rows`` by ``vectors``, of whose last vector ``tail`` lanes count (0: all).

    ``static void KERNEL(const T* a, const T* b, T* c, int64_t depth, bool add)`` adds ``depth`` steps of K, and the
    previous content of c when ``add``.
    """
    sums = [f"s{r}_{v}" for r in range(rows) for v in range(vectors)]
    body = _window_loops(plan, rows, vectors, tail) if plan.direct_window else _flat_loop(plan, rows, vectors, tail)
    pointer = f"{plan.type}* __restrict"
    return "\n".join(
        [
            f"static __attribute__((noinline)) void {kernel_name(plan, rows, vectors, tail)}(",
            f"    const {pointer} a, const {pointer} b, {pointer} c, int64_t depth, bool add) {{",
            "  (void)depth, (void)add;",
            f"  {plan.vector} " + ", ".join(f"{s} = {{}}" for s in sums) + ";",
            *(f"  {line}" for line in body),
            *(f"  {line}" for line in _stores(plan, rows, vectors, tail)),
            "}",
        ]
    )


def _step(plan: Plan, rows: int, vectors: int, tail: int, a: str, b: str) -> list[str]:
    """One step of K: ``a`` and ``b`` are pointer expressions at this k."""
    row_stride = 1 if plan.pack_a else plan.spec.a.row
    last_is_partial = tail and not plan.pack_b and not (plan.spec.window and padded(plan))
    lines = []
    for v in range(vectors):
        address = f"{b} + {v * plan.lanes}"
        part = last_is_partial and v == vectors - 1
        lines.append(
            f"const {plan.vector} b{v} = " + (f"ke_load_part({address}, {tail});" if part else f"ke_load({address});")
        )
    for r in range(rows):
        lines.append(f"const {plan.vector} a{r} = ke_set1(*({a} + {r * row_stride}));")
        lines += [f"s{r}_{v} = ke_fma(a{r}, b{v}, s{r}_{v});" for v in range(vectors)]
    return lines


def padded(plan: Plan) -> bool:
    """The windowed operand is read from a copy with its padding (which also has room past its end)."""
    window = plan.spec.window
    if window is None:
        return False
    inside = all(axis.padding == 0 and axis.padded <= axis.extent for axis in window.axes)
    return plan.prologue_b is not None or not inside or window.axes[-1].stride != 1


def _strides(plan: Plan, rows: int, vectors: int) -> tuple[int, int]:
    a = rows if plan.pack_a else plan.spec.a.col
    b = vectors * plan.lanes if plan.pack_b else plan.spec.b.row
    return a, b


def _flat_loop(plan: Plan, rows: int, vectors: int, tail: int) -> list[str]:
    a_step, b_step = _strides(plan, rows, vectors)
    depth = "depth" if plan.k_split else str(plan.spec.k)
    unroll = min(plan.unroll, plan.kc)
    block: list[str] = []
    for u in range(unroll):
        block += [
            "  {",
            *(f"    {s}" for s in _step(plan, rows, vectors, tail, f"a + {u * a_step}", f"b + {u * b_step}")),
            "  }",
        ]
    if plan.prefetch:
        block += _prefetches(plan, a_step, b_step, unroll)
    lines = [
        "int64_t k = 0;",
        f"for (; k + {unroll} <= {depth}; k += {unroll}, a += {unroll * a_step}, b += {unroll * b_step}) {{",
        *block,
        "}",
    ]
    if unroll > 1 and (plan.k_split or plan.spec.k % unroll):
        rest = _step(plan, rows, vectors, tail, "a", "b")
        lines += [f"for (; k < {depth}; ++k, a += {a_step}, b += {b_step}) {{", *(f"  {s}" for s in rest), "}"]
    return lines


def _prefetches(plan: Plan, a_step: int, b_step: int, unroll: int) -> list[str]:
    """Cache lines of both operands ``prefetch`` steps of K ahead; of an operand read in place, B's rows only."""
    line = 64 // plan.spec.dtype.itemsize
    lines = []
    if plan.pack_a:
        reach = plan.prefetch * a_step
        lines += [f"  __builtin_prefetch(a + {reach + i});" for i in range(0, unroll * a_step, line)]
    width = plan.nr
    for u in range(unroll):
        start = (plan.prefetch + u) * b_step
        lines += [f"  __builtin_prefetch(b + {start + i});" for i in range(0, width, line)]
    return lines


def _window_loops(plan: Plan, rows: int, vectors: int, tail: int) -> list[str]:
    """Channels and outer taps are loops, the taps of the innermost axis are written out."""
    window = plan.spec.window
    assert window is not None
    a_step, _ = _strides(plan, rows, vectors)
    pitch = window_pitches(plan)
    inner = window.axes[-1]
    lines = [f"for (int64_t ch = 0; ch < {window.channels}; ++ch) {{"]
    offset = f"ch * {pitch[0]}"
    for i, axis in enumerate(window.axes[:-1]):
        lines.append(f"for (int64_t t{i} = 0; t{i} < {axis.taps}; ++t{i}) {{")
        offset += f" + t{i} * {axis.dilation * pitch[i + 1]}"
    lines.append(f"const {plan.type}* x = b + {offset};")
    for t in range(inner.taps):
        step = _step(plan, rows, vectors, tail, f"a + {t * a_step}", f"x + {t * inner.dilation}")
        lines += ["{", *(f"  {s}" for s in step), "}"]
    lines.append(f"a += {inner.taps * a_step};")
    return lines + ["}"] * len(window.axes)


def window_pitches(plan: Plan) -> tuple[int, ...]:
    """Strides (channel, axis...) of what windows are read from: the padded copy, or the input itself."""
    window = plan.spec.window
    assert window is not None
    if not padded(plan):
        return (window.channel_stride, *(axis.stride for axis in window.axes))
    strides = [1]
    for axis in reversed(window.axes):
        strides.insert(0, strides[0] * axis.padded)
    return tuple(strides)


def _stores(plan: Plan, rows: int, vectors: int, tail: int) -> list[str]:
    lines = []
    partial = tail and plan.plain
    for mode in ("add", "store") if plan.k_split else ("store",):
        if mode == "add":
            lines.append("if (add) {")
        for r in range(rows):
            for v in range(vectors):
                address, part = f"c + {r * plan.ldc + v * plan.lanes}", partial and v == vectors - 1
                if mode == "add":
                    load = f"ke_load_part({address}, {tail})" if part else f"ke_load({address})"
                    lines.append(f"  s{r}_{v} += {load};")
                elif part:
                    lines.append(f"ke_store_part({address}, s{r}_{v}, {tail});")
                else:
                    lines.append(f"ke_store({address}, s{r}_{v});")
        if mode == "add":
            lines.append("}")
    return lines
