"""The emulator of blocks, built once per machine and kept by content: trusted C++ of the project."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from evaluator_svc.runner.program import ABI, INSTALL_COMPILER, cache_directory, compiler
from shared.child_environment import without_secrets
from shared.errors import ChipError

HERE = Path(__file__).parent
HEADER, SOURCE = HERE / "simt.h", HERE / "simt.cpp"
OPTIONS = ("-std=c++17", "-O2", "-fPIC", "-c")
BUILD_TIMEOUT_S = 60


@cache
def emulator(warp: int, *, counting: bool) -> Path:
    """The object that a kernel is linked with to be run; with ``counting`` it tells what the first call moves.

    Raises:
        ChipError: no compiler, or it cannot build this.
    """
    options = (*OPTIONS, f"-DKE_WARP={warp}", *(("-DKE_COUNT",) if counting else ()))
    parts = (SOURCE.read_bytes(), (ABI / "ke_abi.h").read_bytes(), str(compiler()).encode(), " ".join(options).encode())
    target = cache_directory() / "programs" / hashlib.sha256(b"\0".join(parts)).hexdigest()[:24] / "simt.o"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        output = Path(scratch) / "simt.o"
        command = [str(compiler()), *options, f"-I{ABI}", str(SOURCE), "-o", str(output)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
            env=without_secrets(os.environ),
        )
        if done.returncode != 0:
            raise ChipError(f"cannot build the emulator of blocks: {done.stderr[:200]}", hint=INSTALL_COMPILER)
        output.rename(target)
    return target
