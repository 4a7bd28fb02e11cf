"""Triton for a chip that is not there: every launch is compiled as it would be for the chip, and nothing is launched.

The candidate's ordinary host code runs on tensors of the processor, so kernels are specialised as they would be: by
types, by sizes, by alignment. What compilers say of registers and memory is collected here, in the candidate's reach:
it is advice, never a verdict in the candidate's favour.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

KERNELS_MAX = 8
"""Different ones that are told of; their report has to fit into a page."""
NAME_CHARS, ERROR_CHARS = 48, 600
TOOL_TIMEOUT_S = 30.0
_CUBIN = re.compile(r"REG:(?P<registers>\d+) STACK:(?P<stack>\d+) SHARED:(?P<shared>\d+)")
"""Of ``cuobjdump -res-usage``. What does not fit into registers is on the stack, in memory."""
_AMDGCN = {
    "registers": r"\.vgpr_count:\s+(\d+)",
    "stack": r"\.private_segment_fixed_size:\s+(\d+)",
}
"""Of the metadata in the assembler's text (LLVM's user guide for AMDGPU, code object metadata); accumulators count as
registers there."""


class Offline:
    """``backend`` is Triton's name for it, ``cuda`` or ``hip``; ``architecture`` e.g. 90 or ``gfx942``."""

    def __init__(self, backend: str, architecture: int | str, warp: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget(backend, architecture, warp)
        self._kernels: dict[str, dict[str, Any]] = {}
        self._error = ""

    def install(self) -> None:
        """From here on, whoever launches compiles."""
        from triton.runtime.driver import driver
        from triton.runtime.jit import JITFunction

        driver.set_active(_NoDriver(self._target))
        importlib.import_module("evaluator_svc.hosted.interpreter").tune_nothing()
        compile_for = JITFunction.run
        offline = self

        def run(function: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            del warmup
            try:
                kernel = compile_for(function, *args, grid=grid, warmup=True, **options)
            except Exception as error:
                offline._error = offline._error or _told(error)
                raise
            bound = dict(zip(function.arg_names, args, strict=False)) | options
            offline._compiled(function.__name__, tuple(grid(bound) if callable(grid) else grid), kernel)
            return kernel

        JITFunction.run = run

    def report(self) -> dict[str, Any]:
        """What was compiled so far, and the first error."""
        return {"kernels": list(self._kernels.values()), "error": self._error}

    def _compiled(self, name: str, grid: tuple[int, ...], kernel: Any) -> None:
        key = str(kernel.hash)
        if key in self._kernels or len(self._kernels) == KERNELS_MAX:
            return
        metadata = kernel.metadata
        told = _of_cubin(kernel.asm["cubin"]) if "cubin" in kernel.asm else _of_amdgcn(kernel.asm.get("amdgcn", ""))
        blocks = 1
        for size in grid:
            blocks *= int(size)
        self._kernels[key] = {
            "name": name[:NAME_CHARS],
            "blocks": blocks,
            "warps": int(metadata.num_warps),
            "stages": int(getattr(metadata, "num_stages", 0)),
            **told,
            "shared": int(metadata.shared),  # what is asked for at launch is not in the object
        }


class _NoDriver:
    """What Triton asks of a driver before it launches."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        del device
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        del device
        architecture = self._target.arch
        return divmod(architecture, 10) if isinstance(architecture, int) else (9, 4)


def _told(error: Exception) -> str:
    """Where, and what: between the two a compiler quotes the source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^")]
    place = lines[0].rstrip(":") if len(lines) > 1 else ""
    return f"{type(error).__name__} {place}: {lines[-1] if lines else ''}"[:ERROR_CHARS]


def _of_cubin(cubin: bytes) -> Mapping[str, int]:
    """Registers of a thread and bytes of its stack, by the tool that comes with Triton; empty when it does not tell."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [str(tool), "-res-usage", file.name], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
        )
    found = _CUBIN.search(done.stdout)
    if found is None:
        return {}
    return {"registers": int(found["registers"]), "stack": int(found["stack"])}


def _of_amdgcn(text: str) -> Mapping[str, int]:
    found = {name: re.search(pattern, text) for name, pattern in _AMDGCN.items()}
    return {name: int(match[1]) for name, match in found.items() if match}
