"""The translation unit: what every kernel uses, memory of temporaries, kernels, the guard and the entry (pure)."""

from __future__ import annotations

from importlib.resources import files

from shared.chips import Gpu
from synthesizer_svc.schedule.emit.cpp.shape_guard import shape_guard
from synthesizer_svc.schedule.emit.cpp.text import Lines
from synthesizer_svc.schedule.emit.cuda.kernel import Kernel, emit_group
from synthesizer_svc.schedule.emit.cuda.space import decisions, prepared
from synthesizer_svc.schedule.emit.cuda.supported import check
from synthesizer_svc.schedule.emit.cuda.types import MEMORY
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Schedule, choices_of


def emit_unit(plan: Plan, schedule: Schedule, gpu: Gpu) -> str:
    """Text of the whole kernel.

    Raises:
        Unsupported: something in it is not written here.
    """
    check(plan)
    plan = prepared(plan, schedule)
    kernels = []
    for group in plan.groups:
        usual = {d.name: d.default for d in decisions(plan, group, gpu)}
        kernels.append(emit_group(plan, group, usual | choices_of(schedule, group.name), gpu))
    head = Lines()
    head.add(f"// Written by a schedule: {plan.operator_class}, {len(kernels)} kernel(s), {gpu.name}.")
    head.add('#include "ke_abi.h"')
    head.add('#include "ke_gpu.h"')
    memory = Lines()
    for buffer in plan.temps:
        count = max(1, buffer.nbytes // buffer.dtype.itemsize)
        memory.add(f"__device__ alignas(16) {MEMORY[buffer.dtype]} {buffer.name}_memory[{count}];  // {buffer.shape}")
    prelude = files(__package__).joinpath("prelude.hpp").read_text(encoding="utf-8")
    texts = [head.text(), prelude, *([memory.text()] if plan.temps else []), *(k.text for k in kernels)]
    return "\n".join([*texts, shape_guard(plan, alignment=16), _entry(plan, kernels)])


def _entry(plan: Plan, kernels: list[Kernel]) -> str:
    out = Lines()
    with out.block('extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream)'):
        out.add("if (!ke_accepts(in, n_in, out, n_out)) return KE_DECLINED;")
        for kernel in kernels:
            arguments = "".join(f", {_argument(plan, b)}" for b in kernel.buffers)
            out.add(f"KE_LAUNCH({kernel.name}, {kernel.blocks}, {kernel.threads}, stream{arguments});")
        out.add("return KE_OK;")
    return out.text()


def _argument(plan: Plan, buffer: Buffer) -> str:
    array, place = ("in", plan.inputs.index(buffer)) if buffer.kind == "input" else ("out", plan.outputs.index(buffer))
    return f"({MEMORY[buffer.dtype]}*){array}[{place}].data"
