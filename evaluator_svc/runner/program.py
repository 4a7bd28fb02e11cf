"""The runner program and the stopwatch: trusted C++ of the project, built once per machine and kept by content."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import platformdirs

from evaluator_svc.sandbox import Mount, Sandbox, detect
from shared.child_environment import without_secrets
from shared.errors import ChipError

HERE = Path(__file__).parent
ABI = HERE.parent.parent / "shared" / "abi"
BUILD_TIMEOUT_S = 120
INSTALL_COMPILER = "install a C++ compiler, e.g. `apt-get install g++`"


def compiler() -> Path:
    """The C++ compiler: ``$CXX`` or ``g++`` on the path.

    Raises:
        ChipError: there is none; the message says how to install it.
    """
    found = shutil.which(os.environ.get("CXX") or "g++")
    if found is None:
        raise ChipError("no C++ compiler found", where="cpu-x86_64", hint=INSTALL_COMPILER)
    return Path(found)


def cache_directory() -> Path:
    """Where built things are kept between runs."""
    return Path(platformdirs.user_cache_dir("kernelevolve"))


@cache
def runner_program() -> Path:
    """Build the program that runs inside the box."""
    return _built(
        "native.cpp", "runner", ("-rdynamic", "-fopenmp", "-Wl,--no-as-needed", "-lgomp", "-lmvec", "-lm", "-ldl")
    )


@cache
def keeper_program() -> Path:
    """Build the program that stands between the controller and a box."""
    return _built("keeper.cpp", "keeper", ())


@cache
def hosted_library() -> Path:
    """Build what a Python-hosted candidate's process preloads."""
    return _built("hosted.cpp", "hosted.so", ("-shared", "-fPIC"))


@cache
def stopwatch_library() -> Path:
    """Build the controller's clock."""
    return _built("stopwatch.cpp", "stopwatch.so", ("-shared", "-fPIC"))


@cache
def stopwatch() -> ctypes.CDLL:
    """Build and load the controller's clock; calls into it release the interpreter lock."""
    library = ctypes.CDLL(str(stopwatch_library()))
    library.ke_flush.restype, library.ke_flush.argtypes = None, [ctypes.c_void_p, ctypes.c_int64]
    library.ke_round_trip.restype = ctypes.c_int64
    library.ke_round_trip.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64,
        ctypes.POINTER(ctypes.c_int64),
    ]  # fmt: skip
    return library


@cache
def runtime_mounts() -> tuple[Mount, ...]:
    """The shared libraries that the runner program, and so every kernel, is linked with; nothing else of the host."""
    listing = subprocess.run(["ldd", str(runner_program())], capture_output=True, text=True, check=True).stdout
    paths = [word for line in listing.splitlines() for word in line.split() if word.startswith("/")]
    return tuple(Mount(source=Path(path).resolve(), target=path) for path in dict.fromkeys(paths))


@cache
def machine_sandbox() -> Sandbox:
    """What this machine's kernel lets a box do; found out once per process."""
    return detect(runner_program(), keeper_program(), runtime_mounts())


def _built(source: str, name: str, options: tuple[str, ...]) -> Path:
    compiler_path = compiler()
    digest = hashlib.sha256(str(compiler_path).encode())
    for path in sorted([*HERE.glob("*.hpp"), HERE / source, ABI / "ke_abi.h"]):
        digest.update(path.read_bytes())
    digest.update("\0".join(options).encode())
    target = cache_directory() / "programs" / digest.hexdigest()[:24] / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        output = Path(scratch) / name
        command = [str(compiler_path), "-std=c++17", "-O2", f"-I{ABI}", str(HERE / source), "-o", str(output), *options]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
            env=without_secrets(os.environ),
        )
        if done.returncode != 0:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
            raise ChipError(
                f"{compiler_path} cannot build {source}: {first}", where="cpu-x86_64", hint=INSTALL_COMPILER
            )
        output.rename(target)
    return target
