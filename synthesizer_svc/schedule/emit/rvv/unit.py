"""The translation unit: headers, functions, the guard and the entry (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.emit.rvv import library
from synthesizer_svc.schedule.emit.rvv.group import buffers_of, emit_group
from synthesizer_svc.schedule.emit.rvv.supported import memory_type
from synthesizer_svc.schedule.emit.rvv.text import Lines
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Schedule, choices_of

FLAGS = ("-O3", "-fno-math-errno", "-ffp-contract=fast")


def emit_unit(plan: Plan, schedule: Schedule, name: str, vlen: int) -> str:
    """C11 text of the whole kernel, for registers of ``vlen`` bits. With others it computes the same, or declines.

    Raises:
        Unsupported: something has no form here.
    """
    for buffer in (*plan.inputs, *plan.outputs):
        memory_type(buffer)
    used: set[tuple[str, int]] = set()
    groups = [emit_group(plan, g, choices_of(schedule, g.name), vlen, used) for g in plan.groups]
    out = Lines()
    out.add(f"// Written by a schedule: {plan.operator_class}, {len(plan.groups)} group(s), {name}, VLEN {vlen}.")
    for include in ('"ke_abi.h"', "<riscv_vector.h>", "<stddef.h>"):
        out.add(f"#include {include}")
    out.add("#define KE_INLINE static inline __attribute__((always_inline))")
    for buffer in plan.temps:
        size = max(1, buffer.nbytes // buffer.dtype.itemsize)
        out.add(f"static {memory_type(buffer)} {buffer.name}[{size}] __attribute__((aligned(64)));  // {buffer.shape}")
    return "\n".join(
        part
        for part in [
            out.text(),
            library.text(used),
            *groups,
            _guard(plan, vlen if _fixed(plan, schedule) else 0),
            _entry(plan),
        ]
        if part
    )


def _fixed(plan: Plan, schedule: Schedule) -> bool:
    """Whether some loop counts on the length of registers."""
    return any(choices_of(schedule, group.name).get("length") == "once" for group in plan.groups)


def _guard(plan: Plan, vlen: int) -> str:
    out = Lines()
    out.add("// This kernel is for these shapes, strides and element types only.")
    out.add("const int ke_shape_guard = 1;")
    with out.block("static int ke_accepts(const KeTensor *in, int n_in, const KeTensor *out, int n_out)"):
        out.add(f"if (n_in != {len(plan.inputs)} || n_out != {len(plan.outputs)}) return 0;")
        if vlen:
            out.add(f"if (__riscv_vlenb() != {vlen // 8}) return 0;  // lengths are set once, for whole registers")
        for array, buffers in (("in", plan.inputs), ("out", plan.outputs)):
            for place, buffer in enumerate(buffers):
                out.add(f"if ({_differs(f'{array}[{place}]', buffer)}) return 0;")
        out.add("return 1;")
    return out.text()


def _differs(tensor: str, buffer: Buffer) -> str:
    tests = [f"{tensor}.dtype != {buffer.dtype.code}", f"{tensor}.ndim != {len(buffer.shape)}"]
    for d, (extent, stride) in enumerate(zip(buffer.shape, buffer.strides, strict=True)):
        tests.append(f"{tensor}.shape[{d}] != {extent}")
        tests += [f"{tensor}.strides[{d}] != {stride}"] if extent > 1 else []
    return " || ".join(tests)


def _entry(plan: Plan) -> str:
    out = Lines()
    with out.block("int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream)"):
        out.add("(void)stream;")
        out.add("if (!ke_accepts(in, n_in, out, n_out)) return KE_DECLINED;")
        for group in plan.groups:
            reads, writes = buffers_of(plan, group)
            arguments = [_argument(plan, b) for b in (*reads, *writes)]
            out.add(f"{group.name}({', '.join(arguments)});")
        out.add("return KE_OK;")
    return out.text()


def _argument(plan: Plan, buffer: Buffer) -> str:
    if buffer.kind == "temp":
        return buffer.name
    array, place = ("in", plan.inputs.index(buffer)) if buffer.kind == "input" else ("out", plan.outputs.index(buffer))
    return f"{array}[{place}].data"
