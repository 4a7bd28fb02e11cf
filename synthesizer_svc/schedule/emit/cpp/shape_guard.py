"""The check of a unit against ``ke_abi.h`` that it is given the shapes, strides and types that it is for (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.emit.cpp.text import Lines
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.lazy import Buffer


def shape_guard(plan: Plan, *, alignment: int = 1) -> str:
    """``ke_accepts`` and what it needs. ``alignment``: bytes that every tensor begins at a multiple of."""
    misaligned = f" || (uintptr_t)t.data % {alignment} != 0" if alignment > 1 else ""
    out = Lines()
    out.add("// This kernel is for these shapes, strides and element types only.")
    out.add('extern "C" const int ke_shape_guard = 1;')
    out.add("static bool ke_is(const KeTensor& t, int dtype, int ndim, const int64_t* shape, const int64_t* strides) {")
    out.add(f"  if (t.dtype != dtype || t.ndim != ndim{misaligned}) return false;")
    out.add("  for (int d = 0; d < ndim; ++d)")
    out.add("    if (t.shape[d] != shape[d] || (shape[d] > 1 && t.strides[d] != strides[d])) return false;")
    out.add("  return true;")
    out.add("}")
    with out.block("static bool ke_accepts(const KeTensor* in, int n_in, const KeTensor* out, int n_out)"):
        out.add(f"if (n_in != {len(plan.inputs)} || n_out != {len(plan.outputs)}) return false;")
        for array, buffers in (("in", plan.inputs), ("out", plan.outputs)):
            for place, buffer in enumerate(buffers):
                out.add(_check(array, place, buffer))
        out.add("return true;")
    return out.text()


def _check(array: str, place: int, buffer: Buffer) -> str:
    shape, strides = (", ".join(map(str, v)) for v in (buffer.shape or (0,), buffer.strides or (0,)))
    return (
        f"{{ const int64_t shape[] = {{{shape}}}, strides[] = {{{strides}}}; "
        f"if (!ke_is({array}[{place}], {buffer.dtype.code}, {len(buffer.shape)}, shape, strides)) return false; }}"
    )
