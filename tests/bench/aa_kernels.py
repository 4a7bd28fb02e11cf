"""The kernels of the A/A experiment: an operator's first draft, and the same with a known amount of work added."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator_svc.cases import Suite
from evaluator_svc.pairs import measure
from evaluator_svc.runner.process import Runner
from evaluator_svc.settings import Settings
from evaluator_svc.toolchains import BuildFailed, Built, Toolchain
from shared import chips
from shared.machine import processor
from synthesizer_svc.schedule import emit, plan
from synthesizer_svc.schedule.capture import parse

CAPTURE_S = 300.0
"""For all operators together."""
PROBE_SHARE = 0.2
"""Of a call: the extra work from which the cost of one step is known; ten times what is looked for."""
STEP_NS = 1.0
"""Guess of one step's time: a multiplication's latency."""
PROBES = 2
"""Measurements of it, in processes of their own: one may be placed better than its twin."""
ROUNDS = 2
"""From which it is known about how long a call takes."""

MARK = 0x6B652D657874726
"""Stands for the number of steps in what is built, once, and is replaced there."""
MARK_BYTES = MARK.to_bytes(8, "little")
AROUND = f"""
#undef ke_launch
static volatile long ke_extra = {MARK:#x};
extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream) {{
  const int code = ke_launch_inner(in, n_in, out, n_out, stream);
  const long steps = ke_extra;
  long value = n_in | 1;
  for (long step = 0; step < steps; ++step) asm volatile("imul %0, %0" : "+r"(value));
  return code;
}}
"""
"""Dependent multiplications after each call: time that is no traffic and that no compiler removes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Source and flags of the schedule synthesizer's default schedule, for one thread."""

    source: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown:
    """Of a call, by the extra steps: the median over measurements, and the least and the most that one showed."""

    share: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{100 * self.share:.2f} % [{100 * self.least:.2f}, {100 * self.most:.2f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """``normal`` and ``slow`` differ in one number, which says how many extra steps there are: none, or some."""

    normal: Built
    slow: Built
    slowdown: Slowdown


def drafts(files: Sequence[Path], chip: str) -> list[Draft]:
    """Those of the operators in ``files``, captured in one process.

    Raises:
        subprocess.SubprocessError: one of them cannot be captured, or all took too long.
    """
    command = [sys.executable, "-m", "tests.bench.aa_capture", *map(str, files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=CAPTURE_S, check=True)
    isa = chips.best_isa(chips.load(chip), processor().flags)
    made = []
    for line in done.stdout.splitlines():
        planned = plan.build(parse(json.loads(line)))
        schedule = emit.space("cpp", planned, isa, 1).default()
        emitted = emit.EMITTERS["cpp"].render(planned, schedule, isa, 1)
        source = f"#define ke_launch ke_launch_inner\n{emitted.source}\n{AROUND}"
        made.append(Draft(source=source, flags=tuple(emitted.flags)))
    return made


async def built(draft: Draft, toolchain: Toolchain) -> Built:
    """The draft, with the mark in the place of its steps."""
    made = await toolchain.build(draft.source, draft.flags)
    if isinstance(made, BuildFailed):
        raise RuntimeError(f"a draft does not build: {made.evidence}")  # noqa: TRY004 - a value of the port
    return made


async def prepared(
    marked: Built, call_ns: float, slower: Callable[[Built, Built], Awaitable[float]], *, slowdown: float, place: Path
) -> Kernels:
    """Both kernels, in files below ``place``, with as many extra steps as cost ``slowdown`` of a call.

    ``slower``: the share by which a first kernel is slower than a second one. What a step costs is measured with about
    ``PROBE_SHARE`` of ``call_ns``: two per cent alone would drown in what processes differ.
    """
    normal = with_steps(marked, 0, place)
    steps = max(100, round(PROBE_SHARE * call_ns / STEP_NS))
    probe = with_steps(marked, steps, place)
    shares = sorted([await slower(probe, normal) for _ in range(PROBES)])
    wanted = max(1, round(steps * slowdown / max(statistics.median(shares), 1e-3)))
    shares = [share * wanted / steps for share in shares]
    found = Slowdown(share=statistics.median(shares), least=shares[0], most=shares[-1])
    return Kernels(normal=normal, slow=with_steps(marked, wanted, place), slowdown=found)


async def call_ns(marked: Built, suite: Suite, settings: Settings, cpus: tuple[int, ...], *, place: Path) -> float:
    """What a call takes at the fastest, in ns. The caller has the device to itself."""
    normal = with_steps(marked, 0, place)

    def opened() -> Runner:
        return Runner.open(normal.path, suite.inputs, suite.outputs, threads=1, cpus=cpus)

    return (await measure(opened, opened, suite.public[0], settings, rounds=ROUNDS)).fastest_ns


def with_steps(marked: Built, steps: int, place: Path) -> Built:
    """The same machine code, with ``steps`` in the place of the mark.

    Raises:
        ValueError: the mark is not there, or more than once.
    """
    data = marked.path.read_bytes()
    if data.count(MARK_BYTES) != 1:
        raise ValueError(f"{marked.path} has the mark {data.count(MARK_BYTES)} times")
    path = place / f"{marked.digest[:16]}-{steps}.so"
    if not path.exists():
        path.write_bytes(data.replace(MARK_BYTES, steps.to_bytes(8, "little")))
        path.chmod(0o444)
    return replace(marked, path=path)
