"""Emitted CUDA and HIP on a core: built with the evaluator's emulator of blocks, called on torch tensors."""

import _ctypes
import ctypes
import subprocess

from evaluator_svc.runner.program import ABI
from evaluator_svc.simt import programs
from evaluator_svc.toolchains.gpu_commands import EMULATED
from shared import chips

CHIPS = {"cuda": "nvidia-sm_90", "hip": "amd-gfx942"}


_loaded = []


def gpu(language):
    return chips.load(CHIPS[language]).gpu


def build(source, folder, warp):
    """``ke_launch`` of a kernel whose warps have ``warp`` threads.

    The kernel that was built before is gone: each has the mappings of a thousand stacks.
    """
    while _loaded:
        _ctypes.dlclose(_loaded.pop()._handle)
    text, library = folder / "kernel.cpp", folder / "kernel.so"
    text.write_text(source)
    command = ["g++", *EMULATED, "-shared", f"-DKE_WARP={warp}", f"-I{ABI}", f"-I{programs.HERE}", str(text)]
    done = subprocess.run(
        [*command, str(programs.emulator(warp, counting=False)), "-o", str(library)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:4000]
    _loaded.append(ctypes.CDLL(str(library)))
    return _loaded[-1].ke_launch
