"""The module: kernels, and ``ModelNew`` that allocates and launches (pure)."""

from __future__ import annotations

from shared.chips import Gpu
from synthesizer_svc.schedule.emit.triton.chain import SEPARATE, chain_of, emit_chain, without
from synthesizer_svc.schedule.emit.triton.matrix import product_of
from synthesizer_svc.schedule.emit.triton.matrix_kernel import emit_product
from synthesizer_svc.schedule.emit.triton.prepare import prepared
from synthesizer_svc.schedule.emit.triton.rows import buffers_of, emit_rows
from synthesizer_svc.schedule.emit.triton.space import kernel_decisions
from synthesizer_svc.schedule.emit.triton.text import Lines
from synthesizer_svc.schedule.emit.triton.types import TORCH, Kernel
from synthesizer_svc.schedule.emit.triton.values import is_wide
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Schedule, Value, choices_of

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
LIBDEVICE = "from triton.language.extra import libdevice\n"
DESCRIPTORS = "from triton.tools.tensor_descriptor import TensorDescriptor\n"
MULTIPLIED = """

@triton.jit
def multiplied(a, b):
    return a * b
"""
EXPECT = '''

def expect(name, tensor, shape, strides, dtype):
    """This module is for these shapes, strides and element types only."""
    same = tensor.shape == shape and tensor.dtype is dtype
    if same and tensor.stride() == strides:
        return
    if not same or any(n > 1 and s != t for n, s, t in zip(shape, tensor.stride(), strides)):
        raise ValueError(f"{name} is {tensor.dtype} {tuple(tensor.shape)}, strides {tensor.stride()}; "
                         f"this kernel is for {dtype} {shape}, strides {strides}")


'''
LAUNCH = '''

class Launch:
    """A kernel on its grid. What Triton compiled for tensors that begin at multiples of 16 bytes is kept, one a device,
    and launched without asking again what it was compiled for: ``expect`` has seen the rest. Tensors that begin
    elsewhere, or are not on a GPU, go through Triton every time.
    """

    def __init__(self, kernel, grid, **options):
        self.kernel, self.grid, self.options, self.compiled = kernel, grid, options, {}

    def __call__(self, *tensors):
        if not tensors[0].is_cuda or any(tensor.data_ptr() % 16 for tensor in tensors):
            self.kernel[self.grid](*tensors, **self.options)
            return
        device = torch.cuda.current_device()
        compiled = self.compiled.get(device)
        if compiled is None:
            self.compiled[device] = self.kernel[self.grid](*tensors, **self.options)
        else:
            compiled[self.grid](*tensors)


'''
"""Triton's own launch tells types and alignment of every argument anew, which takes longer than a short kernel."""


def emit_module(plan: Plan, schedule: Schedule, gpu: Gpu) -> str:
    """Python text of the whole kernel.

    Raises:
        Unsupported: nothing is read, so nothing says where the results belong.
    """
    if not plan.inputs:
        raise Unsupported("input", "an operator without inputs has no device")
    plan, kernels = _kernels(prepared(plan, schedule), schedule, gpu)
    written = "".join(f"\n\n{kernel.text}" for kernel in kernels)
    title = f"Written by a schedule: {plan.operator_class}, {len(kernels)} kernel(s), {gpu.name}."
    parts = [f'"""{title}"""\n\n', HEAD]
    parts += [LIBDEVICE] if "libdevice." in written else []
    parts += [DESCRIPTORS] if any(kernel.descriptors for kernel in kernels) else []
    parts += [MULTIPLIED] if ", multiplied," in written else []
    kept = [kernel for kernel in kernels if _is_kept(kernel, gpu)]
    launches = [LAUNCH, *map(_kept, kept), "\n\n"] if kept else []
    return "".join(
        [*parts, written, EXPECT.rstrip("\n") + "\n" if kept else EXPECT, *launches, _model(plan, kernels, gpu)]
    )


def _kernels(plan: Plan, schedule: Schedule, gpu: Gpu) -> tuple[Plan, list[Kernel]]:
    """The kernels in order, and the plan without what they keep to themselves."""
    kernels: list[Kernel] = []
    done: set[str] = set()
    left = plan
    for place, group in enumerate(plan.groups):
        if group.name in done:
            continue
        choices = choices_of(schedule, group.name)
        chain = chain_of(plan, place)
        if chain is not None and choices.get("chain", SEPARATE) != SEPARATE:
            buffers = [
                b for g in plan.groups[place : place + 2] for b in buffers_of(plan, g) if b.name != chain.between
            ]
            once = tuple(dict.fromkeys(buffers))
            kernels.append(emit_chain(chain, once, choices, gpu, wide=is_wide(buffers)))
            done.add(chain.second.group.name)
            left = without(left, chain)
        else:
            kernels.append(_kernel(plan, group, choices, gpu))
    return left, kernels


def _kernel(plan: Plan, group: Group, choices: dict[str, Value], gpu: Gpu) -> Kernel:
    choices = {d.name: d.default for d in kernel_decisions(plan, group, gpu)} | choices
    product = product_of(plan, group)
    if product is None:
        return emit_rows(plan, group, choices, gpu)
    buffers = buffers_of(plan, group)
    return emit_product(product, tuple(buffers), choices, gpu, wide=is_wide(buffers))


def _model(plan: Plan, kernels: list[Kernel], gpu: Gpu) -> str:
    out = Lines()
    with out.block("class ModelNew(torch.nn.Module)"):
        with out.block("def __init__(self, *arguments, **named)"):
            out.add("super().__init__()")
        out.add("")
        with out.block("def forward(self, *arguments)"):
            out.add('"""Tensors in the order of the reference: its arguments, then its state."""')
            names = ", ".join(b.name for b in plan.inputs)
            out.add(f"{names}, = (one for one in arguments if isinstance(one, torch.Tensor))")
            for buffer in plan.inputs:
                shape, strides = _tuple(buffer.shape), _tuple(buffer.strides)
                out.add(f'expect("{buffer.name}", {buffer.name}, {shape}, {strides}, {TORCH[buffer.dtype]})')
            for buffer in (*plan.outputs, *plan.temps):
                out.add(_allocated(buffer, plan.inputs[0].name))
            for kernel in kernels:
                out.add(_launch(kernel, gpu))
            results = [b.name for b in plan.outputs]
            out.add(f"return {results[0] if len(results) == 1 else ', '.join(results)}")
    return out.text()


def _is_kept(kernel: Kernel, gpu: Gpu) -> bool:
    """Whether alignment is all that is left to ask: not of descriptors, nor on AMD, where the storage's size counts."""
    return gpu.name.startswith("sm_") and not kernel.descriptors


def _options(kernel: Kernel) -> str:
    return f"num_warps={kernel.warps}" + (f", num_stages={kernel.stages}" if kernel.stages else "")


def _kept(kernel: Kernel) -> str:
    return f"launch_{kernel.name} = Launch({kernel.name}, ({kernel.programs}, 1, 1), {_options(kernel)})\n"


def _launch(kernel: Kernel, gpu: Gpu) -> str:
    if _is_kept(kernel, gpu):
        return f"launch_{kernel.name}({', '.join(kernel.buffers)})"
    arguments = [*kernel.buffers, *(made for _, made in kernel.descriptors)]
    return f"{kernel.name}[({kernel.programs},)]({', '.join(arguments)}, {_options(kernel)})"


def _allocated(buffer: Buffer, like: str) -> str:
    return f"{buffer.name} = torch.empty({_tuple(buffer.shape)}, dtype={TORCH[buffer.dtype]}, device={like}.device)"


def _tuple(values: tuple[int, ...]) -> str:
    return repr(tuple(values))
