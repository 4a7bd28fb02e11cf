"""Tries every escape of ``escapes.cpp``, as a kernel and as a compiler, and prints what became of each as JSON.

``python -m tests.escapes.attempts CONDITION CACHE LIBRARY PROGRAM``; the conditions are those of
``tests.integration.evaluator.elsewhere``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

import psutil

from evaluator_svc.runner.process import Ran, Runner
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.sandbox import Mount
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains.build_box import WORK, BuildBox, BuildLimits
from shared.dtypes import DType
from tests.integration.evaluator.elsewhere import impose

CELL = TensorSpec(shape=(4,), dtype=DType.F32)
THROUGH, REFUSED = "got through", "refused"


def names(program: Path) -> list[str]:
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()


async def as_kernel(library: Path, choice: int) -> dict[str, str]:
    async with Runner.open(library, [CELL], [CELL]) as runner:
        runner.write_input(0, 0, array("f", [choice, 0, 0, 0]))
        got = await runner.run(1, timeout_s=10)
        if not isinstance(got, Ran):
            return {"outcome": str(got.status), **{entry.name: entry.value for entry in got.evidence}}
        told = list(runner.output_bytes(0, 0).cast("f"))
        held = int(told[1]) | int(told[2]) << 16
        outcome = {1.0: THROUGH, 0.5: REFUSED, 0.0: "ran"}[told[0]]
        return {"outcome": outcome, "descriptors": str(held.bit_count()), "level": runner.sandbox}


def as_compiler(program: Path, name: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="ke-build-") as work:
        shutil.copy(program, Path(work) / "compiler")
        place = machine_sandbox().path(Mount(source=Path(work), target=WORK))
        box = BuildBox(work=Path(work), limits=BuildLimits(time_s=10), program=Path(place) / "compiler")
        done = box.run([name])
    return {"outcome": {10: THROUGH, 11: REFUSED}.get(done.status, f"ended with {done.status}"), "level": done.sandbox}


def remains() -> dict[str, list[str]]:
    """What an escape could have left behind."""
    temporary = Path(tempfile.gettempdir())
    return {
        "processes": [str(child) for child in psutil.Process().children(recursive=True)],
        "descriptors": sorted(str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()),
        "files": sorted(str(p) for p in (*Path("/dev/shm").glob("*escape*"), *temporary.glob("ke-escape*"))),
        "segments": [line for line in Path("/proc/sysvipc/shm").read_text().splitlines() if f" {1 << 30} " in line],
    }


def main(library: Path, program: Path) -> None:
    machine_sandbox()
    asyncio.run(as_kernel(library, -1))
    found, before = {}, remains()
    for choice, name in enumerate(names(program)):
        found[name] = {"kernel": asyncio.run(as_kernel(library, choice)), "compiler": as_compiler(program, name)}
        left = remains()["processes"]
        if left:
            found[name]["left"] = left
    after = remains()
    found["harmless afterwards"] = {"kernel": asyncio.run(as_kernel(library, -1))}
    found["remains"] = {kind: after[kind] for kind in after if after[kind] != before[kind]}
    print(json.dumps(found))


if __name__ == "__main__":
    impose(sys.argv[1].split("+"))
    os.environ["XDG_CACHE_HOME"] = sys.argv[2]
    main(Path(sys.argv[3]), Path(sys.argv[4]))
