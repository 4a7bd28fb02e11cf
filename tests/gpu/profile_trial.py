"""Profile a Triton softmax and an eager one as the evaluator does, and print what was counted and concluded.

For a machine with an NVIDIA GPU and Nsight Compute; takes half a minute, and up to two where something is in the way:

    python tests/gpu/profile_trial.py [FOLDER]

``FOLDER`` gets the reports as the tool wrote them (``ncu_*.csv``), to be kept as samples. Where the box does not work,
the same is tried without its filter for system calls and without the box at all, so that one run tells what is in the
way; the evaluator itself never does that. Exit status 0: counters came out of the box.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import seccompy

from evaluator_svc import boxed_tool, syscalls
from evaluator_svc.boxed_tool import Subject
from evaluator_svc.hosted import box
from evaluator_svc.profilers import ncu, ncu_metrics, ncu_report, told
from evaluator_svc.profilers.call import Call
from evaluator_svc.profilers.ncu import Ncu
from evaluator_svc.profilers.ncu_report import Report
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built
from shared.dtypes import DType

ROWS, COLUMNS = 16384, 4096
SPEC = TensorSpec(shape=(ROWS, COLUMNS), dtype=DType.F16)
LIMIT_S = 25.0
FUSED = f"""
import torch
import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x, y, columns: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, columns)
    value = tl.load(x + row * columns + at).to(tl.float32)
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row * columns + at, (power / tl.sum(power, axis=0)).to(tl.float16))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, {COLUMNS}, num_warps=4)
        return y
"""
EAGER = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        power = torch.exp(x.float() - x.float().amax(dim=-1, keepdim=True))
        return (power / power.sum(dim=-1, keepdim=True)).half()
"""


def main(folder: Path | None) -> int:
    tool = ncu.found()
    if tool is None:
        print(ncu.ABSENT)
        return 1
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout.split("\n")
    print("tool:", tool, "->", tool.resolve(), "|", next((line for line in said if line.startswith("Version")), said))
    print("driver:", _admin_only(), "| sandbox:", machine_sandbox())
    values = np.random.default_rng(1).standard_normal(ROWS * COLUMNS, dtype=np.float32).astype(np.float16)
    with tempfile.TemporaryDirectory() as work:
        fused = _tried(tool, "triton", FUSED, values, Path(work), folder)
        if not fused:
            _unknown(tool)
            syscalls.profiler_filter = lambda: seccompy.Filter(default=seccompy.Action.ALLOW).program
            print("\n--- in the box, every system call allowed")
            _tried(tool, "triton_unfiltered", FUSED, values, Path(work), folder)
            print("\n--- without the box")
            _unboxed(tool, _subject(FUSED, values, Path(work)), Path(work), folder)
            return 1
        _tried(tool, "eager", EAGER, values, Path(work), folder)
    return 0


def _tried(tool: Path, name: str, text: str, values: np.ndarray, work: Path, folder: Path | None) -> bool:
    runner = Ncu(tool=tool, time_s=LIMIT_S, profile=ncu.gpu_profile())
    begin = time.monotonic()
    report = runner.run(_subject(text, values, work))
    _shown(name, report, time.monotonic() - begin)
    if folder is not None and runner.text:
        (folder / f"ncu_{name}.csv").write_text(runner.text)
    return bool(report.kernels)


def _unboxed(tool: Path, subject: Subject, work: Path, folder: Path | None) -> None:
    runner = Ncu(tool=tool, time_s=LIMIT_S, profile=ncu.gpu_profile())
    runner.boxed.write(work, subject)  # the same request, without the box
    code = str(Path(__file__).parents[2])
    request = work / boxed_tool.REQUEST
    request.write_text(request.read_text().replace(f'"{box.CODE}"', f'"{code}"'))
    arguments = [
        word.replace("{work}", str(work)).replace(box.CODE, code)
        for word in [*runner.options(), *runner.boxed.program()]
    ]
    begin = time.monotonic()
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    written = work / ncu.REPORT
    text = written.read_text() if written.exists() else ""
    _shown("triton_unboxed", ncu_report.parse(text), time.monotonic() - begin)
    print("status", done.returncode, "|", done.stdout[-600:], done.stderr[-600:], text[:600])
    if folder is not None and text:
        (folder / "ncu_triton_unboxed.csv").write_text(text)


def _unknown(tool: Path) -> None:
    """Names that the tool does not list for this chip. Those of launches and of the device it never lists."""
    done = subprocess.run([tool, "--query-metrics"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    listed = set(re.findall(r"[a-z0-9]+__\w+", done.stdout))
    asked = [name for name in ncu_metrics.asked() if not name.startswith(("launch__", "device__"))]
    unknown = [name for name in asked if name.partition(".")[0] not in listed]
    print(f"metrics: {len(listed)} listed, {done.stderr[:200]!r}; not among them: {', '.join(unknown) or 'none'}")


def _shown(name: str, report: Report, seconds: float) -> None:
    print(f"\n=== {name}: {len(report.kernels)} launches in {seconds:.1f} s {report.refused}")
    for kernel in report.kernels:
        told_of = {field: value for field, value in asdict(kernel).items() if value not in (None, ())}
        print(told_of)
        print("not told:", [field for field, value in asdict(kernel).items() if value in (None, ())])
    if report.kernels:
        found = told.diagnosis(Call(kernels=report.kernels, bytes_min=2 * SPEC.nbytes), "trial")
        print(f"bound: {found.bound.value}; {found.summary}")
        for entry in found.evidence:
            print(f"  {entry.name}: {entry.value}")


def _subject(text: str, values: np.ndarray, work: Path) -> Subject:
    path = work / "kernel.py"
    path.write_text(text)
    built = Built(path=path, digest="", log="", build_ns=0, sandbox="", host="hosted", language="triton")
    return Subject(built=built, inputs=[SPEC], values=[memoryview(values)], signature=Signature(arguments=(None,)))


def _admin_only() -> str:
    params = Path("/proc/driver/nvidia/params")
    lines = params.read_text().splitlines() if params.exists() else []
    return next((line for line in lines if line.startswith("RmProfilingAdminOnly")), "RmProfilingAdminOnly not told")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
