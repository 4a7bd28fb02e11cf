"""QEMU and the counting plugin: found, or built once and kept by content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from evaluator_svc.runner.program import cache_directory, compiler
from evaluator_svc.sandbox import Mount
from shared import chips
from shared.child_environment import without_secrets
from shared.errors import ChipError

CHIP = "riscv-rvv"
HERE = Path(__file__).parent
HARNESS = HERE / "harness.S"
BUILD_TIMEOUT_S = 60
QEMU, CLANG, LINKER = "qemu-riscv64", "clang-19", "ld.lld-19"


def tool(name: str) -> Path:
    """A program on the path.

    Raises:
        ChipError: there is none; the hint says how to install it.
    """
    found = shutil.which(name)
    if found is None:
        raise ChipError(f"{name} is not on PATH", where=CHIP, hint=chips.load(CHIP).needs.get(name, ""))
    return Path(found)


@cache
def version(name: str) -> str:
    """First line of ``name --version``."""
    done = subprocess.run([str(tool(name)), "--version"], capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.splitlines()[0]


@cache
def plugin() -> Path:
    """Build the plugin.

    Raises:
        ChipError: it cannot be built.
    """
    source = HERE / "counter.c"
    digest = hashlib.sha256(source.read_bytes() + str(compiler()).encode()).hexdigest()
    target = cache_directory() / "programs" / digest[:24] / "counter.so"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        output = Path(scratch) / "counter.so"
        command = [str(compiler()), "-x", "c", "-std=gnu11", "-O2", "-shared", "-fPIC", str(source), "-o", str(output)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
            env=without_secrets(os.environ),
        )
        if done.returncode != 0:
            raise ChipError(f"cannot build the counting plugin: {done.stderr.strip()[:200]}", where=CHIP)
        output.rename(target)
    return target


@cache
def mounts() -> tuple[Mount, ...]:
    """QEMU with its shared libraries, and the plugin."""
    listing = subprocess.run(["ldd", str(tool(QEMU))], capture_output=True, text=True, check=True).stdout
    libraries = [word for line in listing.splitlines() for word in line.split() if word.startswith("/")]
    paths = [str(tool(QEMU)), *dict.fromkeys(libraries)]
    found = tuple(Mount(source=Path(path).resolve(), target=path) for path in paths)
    return (*found, Mount(source=plugin(), target="/ke/counter.so"))
