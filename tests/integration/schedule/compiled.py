"""Compiling many emitted kernels in one translation unit, and calling them on torch tensors."""

import ctypes
import subprocess
import warnings
from pathlib import Path

import torch

from shared import chips
from shared.abi import __file__ as abi_file
from shared.dtypes import DType
from synthesizer_svc.schedule import capture, capture_child, emit, plan
from synthesizer_svc.schedule.emit.cpp.unit import GROUPS_BEGIN
from synthesizer_svc.schedule.graph import Unsupported

MAX_DIMS = 8
MARGIN = 4096  # bytes around every output that must stay as they were


class KeTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * MAX_DIMS),
        ("strides", ctypes.c_int64 * MAX_DIMS),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    )


def this_isa():
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    return chips.best_isa(chips.load("cpu-x86_64"), frozenset(flags.split(":")[1].split()))


def capture_here(source):
    """Capture in this process, which has torch already: a child per case would import it again."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as the child does: they are torch's own
            program, inputs, model = capture_child.export(source)
            raw = capture_child.encode_graph(program, inputs, model)
    except capture_child.Refused as refusal:
        raise Unsupported(refusal.node, refusal.why) from refusal
    return capture.parse(raw), model, inputs


def planned(source):
    graph, model, inputs = capture_here(source)
    return plan.build(graph), model, inputs


def compile_together(sources, folder, flags, optimise="-O1"):
    """Launchers of several kernels in one shared object: each in a namespace, headers once."""
    head = sources[0].split(GROUPS_BEGIN)[0]
    parts = [head]
    for number, source in enumerate(sources):
        body = (
            source.split(GROUPS_BEGIN)[1]
            .replace("ke_launch", f"launch_{number}")
            .replace("ke_shape_guard", f"guard_{number}")
        )
        parts.append(f"namespace case_{number} {{\n{body}\n}}")
    text, library = folder / "kernels.cpp", folder / "kernels.so"
    text.write_text("\n".join(parts))
    command = [
        "g++",
        *flags,
        optimise,
        "-fPIC",
        "-shared",
        "-I",
        str(Path(abi_file).parent),
        str(text),
        "-o",
        str(library),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    loaded = ctypes.CDLL(str(library))
    return [getattr(loaded, f"launch_{number}") for number in range(len(sources))]


def describe(tensor, address):
    out = KeTensor(data=address, ndim=tensor.dim(), dtype=DType(str(tensor.dtype).removeprefix("torch.")).code)
    for d in range(tensor.dim()):
        out.shape[d], out.strides[d] = tensor.shape[d], tensor.stride(d)
    return out


def kernel_inputs(model, inputs):
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    return tensors + [value.detach() for value in model.state_dict().values()]


def launch(function, tensors, expected, device="cpu"):
    """Run a kernel into poisoned outputs; checks its return code, margins and that inputs stay as they were.

    ``expected`` gives shapes and dtypes of the outputs. On a GPU the kernel is launched on torch's stream.
    """
    blocks = [
        torch.full((MARGIN + e.numel() * e.element_size() + MARGIN + 64,), 0xA5, dtype=torch.uint8, device=device)
        for e in expected
    ]
    starts = [MARGIN + -(b.data_ptr() + MARGIN) % 64 for b in blocks]
    outs = [e.contiguous() for e in expected]
    described = [describe(o, b.data_ptr() + s) for o, b, s in zip(outs, blocks, starts, strict=True)]
    tensors = [t.to(device) for t in tensors]
    aligned = [t if t.data_ptr() % 64 == 0 else realigned(t) for t in tensors]
    before = [t.clone() for t in aligned]
    arrays = (
        (KeTensor * len(tensors))(*(describe(t, t.data_ptr()) for t in aligned)),
        (KeTensor * len(outs))(*described),
    )
    stream = None if device == "cpu" else ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = function(arrays[0], len(tensors), arrays[1], len(outs), stream)
    assert code == 0, f"the kernel returned {code}"
    results = []
    for block, start, out in zip(blocks, starts, outs, strict=True):
        size = out.numel() * out.element_size()
        around = torch.cat([block[:start], block[start + size :]])
        assert bool((around == 0xA5).all()), "wrote outside of the output"
        results.append(block[start : start + size].clone().view(out.dtype).reshape(out.shape).cpu())
    assert all(
        torch.equal(a.isnan(), b.isnan()) and torch.equal(a[~a.isnan()], b[~b.isnan()])
        for a, b in zip(before, aligned, strict=True)
    )
    return results


def realigned(tensor):
    """The same values and strides at an address aligned to 64 bytes."""
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    room = torch.empty(span + 64 // tensor.element_size(), dtype=tensor.dtype, device=tensor.device)
    skip = (-room.data_ptr() % 64) // tensor.element_size()
    placed = torch.as_strided(room, tensor.shape, tensor.stride(), skip)
    placed.copy_(tensor)
    return placed


def render(built, schedule=None, *, isa=None, threads=1):
    isa = isa or this_isa()
    space = emit.space("cpp", built, isa, threads)
    return emit.render("cpp", built, schedule or space.default(), isa, threads)
