"""Convolution input: its copy with padding, and panels of windows taken from it (pure)."""

from __future__ import annotations

from math import prod

from synthesizer_svc.schedule.emit.cpp.contraction_kernel import padded, window_pitches
from synthesizer_svc.schedule.emit.cpp.contraction_pack import batch_names
from synthesizer_svc.schedule.emit.cpp.contraction_plan import Plan
from synthesizer_svc.schedule.emit.cpp.contraction_spec import Lanes, Window, WindowAxis


def window_copy_size(plan: Plan) -> int:
    """Elements of the padded copy of one batch's channels, with room for whole vectors at the end."""
    window = plan.spec.window
    if window is None or not padded(plan):
        return 0
    return window.channels * prod(axis.padded for axis in window.axes) + plan.nr + plan.lanes


def _inside(axis: WindowAxis) -> tuple[int, int]:
    """First padded position inside the input, and the number of them that windows touch."""
    first = max(axis.padding, 0)
    return first, max(min(axis.padded, axis.padding + axis.extent) - first, 0)


def emit_copy(plan: Plan) -> list[str]:
    """Statements that copy ``pB``'s channels into ``padded``, applying the prologue.

    Padding is never written: the buffer starts as zeros and its layout never changes.
    """
    window = plan.spec.window
    assert window is not None
    pitch = window_pitches(plan)
    lines = [f"for (int64_t ch = 0; ch < {window.channels}; ++ch)"]
    source, target, flat = f"ch * {window.channel_stride}", f"ch * {pitch[0]}", "0"
    for i, axis in enumerate(window.axes[:-1]):
        first, count = _inside(axis)
        lines.append(f"for (int64_t i{i} = 0; i{i} < {count}; ++i{i})")
        source += f" + i{i} * {axis.stride}"
        target += f" + (i{i} + {first}) * {pitch[i + 1]}"
        flat = f"({flat} + i{i}) * {window.axes[i + 1].extent}"
    inner = window.axes[-1]
    first, count = _inside(inner)
    lines.append("{")
    lines.append(f"  const {plan.type}* from = pB + {source}; {plan.type}* to = padded + {target} + {first};")
    lines += [f"  {s}" for s in _copy_row(plan, inner, count, flat)]
    return [*lines, "}"]


def _copy_row(plan: Plan, inner: WindowAxis, count: int, flat: str) -> list[str]:
    w = plan.lanes
    tail = count % w

    def value(i: str, part: str | None) -> str:
        if inner.stride == 1:
            load = f"ke_load_part(from + {i}, {part})" if part else f"ke_load(from + {i})"
        else:
            load = f"ke_load_strided(from + {i} * {inner.stride}, {inner.stride}{', ' + part if part else ''})"
        if plan.prologue_b is None:
            return load
        where = Lanes(value=load, batch=batch_names(plan), row="ch", col=f"({flat} + {i})", axis="col", count=part)
        return plan.prologue_b(where)

    lines = (
        [f"for (int64_t i = 0; i + {w} <= {count}; i += {w}) ke_store(to + i, {value('i', None)});"]
        if count >= w
        else []
    )
    if tail:
        at = str(count - tail)
        lines.append(f"ke_store_part(to + {at}, {value(at, str(tail))}, {tail});")
    return lines


def emit_pack_windows(plan: Plan) -> list[str]:
    """The lambda ``pack_b(to, pc, depth, jc, nc)`` for a window: panels of output positions, k by k.

    Within a panel the offsets of its positions are the same for every k; vectors whose positions are neighbours are
    loaded, others gathered.
    """
    edge = plan.spec.n % plan.nr
    w = plan.lanes
    lines = [f"const auto pack_b = [&]({plan.type}* to, int64_t pc, int64_t depth, int64_t jc, int64_t nc) {{"]
    lines.append("  const auto panel = [&](int64_t col, int columns, int width) {")
    lines += [f"    {s}" for s in _panel(plan)]
    lines += ["    to += width * depth;", "  };"]
    lines.append(f"  for (int64_t j = 0; j + {plan.nr} <= nc; j += {plan.nr}) panel(jc + j, {plan.nr}, {plan.nr});")
    if edge:
        lines.append(f"  if (nc % {plan.nr} != 0) panel(jc + nc - {edge}, {edge}, {-(-edge // w) * w});")
    return [*lines, "};"]


def _panel(plan: Plan) -> list[str]:
    window, w = plan.spec.window, plan.lanes
    assert window is not None
    pitch = window_pitches(plan)
    lines = [f"int32_t offset[{plan.nr}] = {{}}; bool neighbours[{plan.vectors}];"]
    lines += ["for (int l = 0; l < columns; ++l) {", "  int64_t n = col + l, at = 0;"]
    for i, axis in reversed(list(enumerate(window.axes))):
        lines.append(f"  at += n % {axis.out} * {axis.step * pitch[i + 1]}; n /= {axis.out};")
    lines += ["  offset[l] = (int32_t)at;", "}", f"for (int v = 0; v < width / {w}; ++v) {{"]
    lines.append(f"  neighbours[v] = (v + 1) * {w} <= columns;")
    lines.append(f"  for (int l = 1; l < {w}; ++l) neighbours[v] &= offset[v * {w} + l] == offset[v * {w}] + l;")
    lines += [
        "}",
        "for (int64_t k = 0; k < depth; ++k) {",
        f"  const {plan.type}* x = window + {_offset_of_k(window, pitch)};",
    ]
    lines.append(f"  for (int v = 0; v < width / {w}; ++v) {{")
    lines.append(f"    const int32_t* o = offset + v * {w};")
    lines.append(
        f"    ke_store(to + k * width + v * {w}, neighbours[v] ? ke_load(x + o[0]) : ke_gather(x, ke_load(o)));"
    )
    return [*lines, "  }", "}"]


def _offset_of_k(window: Window, pitch: tuple[int, ...]) -> str:
    terms = []
    below = 1
    for axis, stride in zip(reversed(window.axes), reversed(pitch), strict=False):
        terms.append(f"(pc + k) / {below} % {axis.taps} * {axis.dilation * stride}")
        below *= axis.taps
    terms.append(f"(pc + k) / {below} * {pitch[0]}")
    return " + ".join(terms)
