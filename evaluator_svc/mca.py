"""llvm-mca on a loop's body: cycles an iteration, and cycles that execution ports alone would need."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import Sequence

from evaluator_svc.loops import LoopFacts, Throughput
from shared.machine import processor

ITERATIONS = 100
TIMEOUT_S = 10.0
LOOPS_MAX = 3
NAMES = ("llvm-mca", *(f"llvm-mca-{number}" for number in range(22, 12, -1)))
AVX512_MODEL = "skylake-avx512"
"""Used where the processor's own model lacks AVX-512 (Zen 4 before LLVM 16): ports differ, dependences hold."""
_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)", re.MULTILINE)
_THROUGHPUT = re.compile(r"^Block RThroughput:\s+([\d.]+)", re.MULTILINE)


async def throughputs(loops: Sequence[LoopFacts]) -> tuple[tuple[Throughput, ...], str]:
    """Figures of the heaviest loops, or none and the reason."""
    tool = next((found for found in map(shutil.which, NAMES) if found), None)
    if tool is None:
        return (), "llvm-mca is not installed (apt-get install llvm)"
    if not loops:
        return (), "no innermost loop with floating-point work found"
    chosen = loops[:LOOPS_MAX]
    wide = any(loop.vector_bits > 256 for loop in chosen)
    models = ("native", AVX512_MODEL) if wide and "avx512f" in processor().flags else ("native",)
    reason = ""
    for model in models:
        done = await asyncio.gather(*(_model(tool, loop, model) for loop in chosen))
        figures = tuple(one for one in done if isinstance(one, Throughput))
        if figures:
            return figures, ""
        reason = str(done[0])
    return (), reason


async def _model(tool: str, loop: LoopFacts, cpu: str) -> Throughput | str:
    process = await asyncio.create_subprocess_exec(
        tool,
        f"-mcpu={cpu}",
        f"-iterations={ITERATIONS}",
        "-instruction-info=0",
        "-resource-pressure=0",
        "-",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    text = "\n".join(loop.instructions) + "\n"
    try:
        out, errors = await asyncio.wait_for(process.communicate(text.encode()), TIMEOUT_S)
    except TimeoutError:
        return f"llvm-mca took longer than {TIMEOUT_S:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    return parse(out.decode(), loop.label, cpu) or f"llvm-mca: {errors.decode().strip().splitlines()[0:1]}"


def parse(report: str, loop: str, cpu: str) -> Throughput | None:
    """The two figures of a summary view; None when it has none."""
    cycles, ports = _CYCLES.search(report), _THROUGHPUT.search(report)
    if not cycles or not ports:
        return None
    return Throughput(loop=loop, cycles=int(cycles.group(1)) / ITERATIONS, port_cycles=float(ports.group(1)), cpu=cpu)
