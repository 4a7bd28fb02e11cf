"""Building emitted kernels into static programs, and running them on tensors in an emulator of the vector machine."""

import shutil
import struct
import subprocess
from pathlib import Path

import torch

from shared.abi import __file__ as abi_file
from shared.dtypes import DType

MARGIN, POISON = 4096, 0xA5
CHANGED = 100
HERE = Path(__file__).parent
COMPILER = "clang-19"
EMULATOR = "qemu-riscv64"
TARGET = ("--target=riscv64-linux-gnu", "-march=rv64gcv", "-mabi=lp64d", "-static", "-fuse-ld=lld")
missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]


def build(source, flags, folder):
    """The program of one kernel."""
    text, program = folder / "kernel.c", folder / "kernel.elf"
    text.write_text(source)
    command = [COMPILER, *TARGET, *flags, "-Wall", "-Werror", "-I", str(Path(abi_file).parent), str(text)]
    done = subprocess.run(
        [*command, str(HERE / "driver.c"), "-o", str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    return program


def launch(program, tensors, expected, *, vlen=256, plugin=()):
    """The kernel's outputs, of the shapes and types of ``expected``. Inputs and margins stay as they were."""
    outs = [e.contiguous() for e in expected]
    parts = [struct.pack("<ii", len(tensors), len(outs))]
    for tensor in tensors:
        parts += [_described(tensor), _spanned(tensor)]
    parts += [_described(out) for out in outs]
    emulator = [EMULATOR, "-cpu", f"rv64,v=true,vlen={vlen},elen=64", *plugin, str(program)]
    done = subprocess.run(emulator, input=b"".join(parts), capture_output=True, env={}, check=False, timeout=60)
    assert done.returncode == 0, f"the program ended with {done.returncode}: {done.stderr[-500:]!r}"
    (code,) = struct.unpack_from("<i", done.stdout)
    assert code != CHANGED, "an input was changed"
    assert code == 0, f"the kernel returned {code}"
    found, at = [], 4
    for out in outs:
        size = out.numel() * out.element_size()
        margin = done.stdout[at + size : at + size + MARGIN]
        assert margin == bytes([POISON]) * MARGIN, "memory behind an output was written"
        found.append(torch.frombuffer(bytearray(done.stdout[at : at + size]), dtype=out.dtype).reshape(out.shape))
        at += size + MARGIN
    return found


def _elements(tensor):
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) if tensor.numel() else 0


def _described(tensor):
    pad = [0] * (8 - tensor.dim())
    code = DType(str(tensor.dtype).removeprefix("torch.")).code
    size = _elements(tensor) * tensor.element_size()
    return struct.pack("<qq8q8qii", size, 0, *tensor.shape, *pad, *tensor.stride(), *pad, tensor.dim(), code)


def _spanned(tensor):
    """The bytes from the first to the last element, whatever lies between them."""
    flat = torch.as_strided(tensor, (_elements(tensor),), (1,))
    return flat.contiguous().view(torch.uint8).numpy().tobytes()
