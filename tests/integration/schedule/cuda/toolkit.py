"""Emitted CUDA as NVIDIA's compiler makes it: what a card is given."""

import ctypes
import shutil
import subprocess

from evaluator_svc.runner.program import ABI

MISSING = shutil.which("nvcc") is None
OPTIONS = ("-std=c++17", "-O3", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC")


def build(source, folder):
    """``ke_launch`` of a kernel for compute capability 9.0."""
    text, library = folder / "kernel.cu", folder / f"kernel{len(list(folder.glob('*.so')))}.so"
    text.write_text(source)
    command = ["nvcc", *OPTIONS, f"-I{ABI}", str(text), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library)).ke_launch
