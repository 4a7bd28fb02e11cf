"""llvm-mca on a loop's body: cycles an iteration, and cycles that execution ports alone would need."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator_svc.loops import LoopFacts, Throughput
from shared.child_environment import without_secrets
from shared.machine import processor

ITERATIONS = 100
TIMEOUT_S = 10.0
LOOPS_MAX = 3
KNOWN_MAX = 512
"""Answers kept. They depend on nothing but the loops, and asking takes as long as starting a box does."""
NAMES = ("llvm-mca", *(f"llvm-mca-{number}" for number in range(22, 12, -1)))
AVX512_MODEL = "skylake-avx512"
"""Used where the processor's own model lacks AVX-512 (Zen 4 before LLVM 16): ports differ, dependences hold."""
BEGIN, END = "# LLVM-MCA-BEGIN", "# LLVM-MCA-END"
_REGION = re.compile(r"^\[\d+\] Code Region.*$", re.MULTILINE)
_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)", re.MULTILINE)
_THROUGHPUT = re.compile(r"^Block RThroughput:\s+([\d.]+)", re.MULTILINE)


_known: OrderedDict[tuple[str, tuple[LoopFacts, ...]], tuple[Throughput, ...]] = OrderedDict()


async def throughputs(loops: Sequence[LoopFacts]) -> tuple[tuple[Throughput, ...], str]:
    """Figures of the heaviest loops, or none and the reason."""
    tool = next((found for found in map(shutil.which, NAMES) if found), None)
    if tool is None:
        return (), "llvm-mca is not installed (apt-get install llvm)"
    if not loops:
        return (), "no innermost loop with floating-point work found"
    chosen = tuple(loops[:LOOPS_MAX])
    if (tool, chosen) in _known:
        _known.move_to_end((tool, chosen))
        return _known[tool, chosen], ""
    wide = any(loop.vector_bits > 256 for loop in chosen)
    models = ("native", AVX512_MODEL) if wide and "avx512f" in processor().flags else ("native",)
    reason = ""
    for model in models:
        done = await _together(tool, chosen, model)
        figures = tuple(one for one in done if isinstance(one, Throughput))
        if figures:
            _known[tool, chosen] = figures
            if len(_known) > KNOWN_MAX:
                _known.popitem(last=False)
            return figures, ""
        reason = str(done[0])
    return (), reason


async def _together(tool: str, loops: Sequence[LoopFacts], cpu: str) -> Sequence[Throughput | str]:
    """One process for all loops, as starting it is most of its time. One that the model does not know spoils the run
    for all: then each is asked for alone.
    """
    regions = (f"{BEGIN} {n}\n" + "\n".join(loop.instructions) + f"\n{END} {n}\n" for n, loop in enumerate(loops))
    said = await _asked(tool, "".join(regions), cpu)
    parts = _REGION.split(said.report)[1:]
    if len(parts) == len(loops):
        return [parse(part, loop.label, cpu) or said.failure for part, loop in zip(parts, loops, strict=True)]
    alone = await asyncio.gather(*(_asked(tool, "\n".join(loop.instructions) + "\n", cpu) for loop in loops))
    return [parse(one.report, loop.label, cpu) or one.failure for one, loop in zip(alone, loops, strict=True)]


@dataclass(frozen=True, slots=True)
class _Said:
    report: str
    failure: str


async def _asked(tool: str, text: str, cpu: str) -> _Said:
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
        env=without_secrets(os.environ),
        start_new_session=True,  # a terminal's Ctrl-C is no finding
    )
    try:
        out, errors = await asyncio.wait_for(process.communicate(text.encode()), TIMEOUT_S)
    except TimeoutError:
        return _Said("", f"llvm-mca took longer than {TIMEOUT_S:g} s")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    return _Said(out.decode(), f"llvm-mca: {errors.decode().strip().splitlines()[0:1]}")


def parse(report: str, loop: str, cpu: str) -> Throughput | None:
    """The two figures of a summary view; None when it has none."""
    cycles, ports = _CYCLES.search(report), _THROUGHPUT.search(report)
    if not cycles or not ports:
        return None
    return Throughput(loop=loop, cycles=int(cycles.group(1)) / ITERATIONS, port_cycles=float(ports.group(1)), cpu=cpu)
