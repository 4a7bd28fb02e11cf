"""The kernels of the A/A experiment: an operator's first draft, and the same with a known amount of work added."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial

from evaluator_svc.cases import Suite
from evaluator_svc.pairs import measure
from evaluator_svc.runner.process import Runner
from evaluator_svc.settings import Settings
from evaluator_svc.toolchains import BuildFailed, Built, Toolchain
from shared import chips
from shared.machine import processor
from shared.operators import OperatorSpec
from synthesizer_svc.schedule.captured import CapturedLowering
from synthesizer_svc.schedule.lowering import Target

CAPTURE_S = 120.0
PROBE_SHARE = 0.2
"""Of a call: the extra work from which the cost of one step is known; ten times what is looked for."""
STEP_NS = 1.0
"""Guess of one step's time: a multiplication's latency."""
PROBE_PAIRS, PROOF_PAIRS = 3, 5
"""Pairs of processes: one alone may be placed better than the other."""
ROUNDS = 16

AROUND = """
#undef ke_launch
extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream) {
  const int code = ke_launch_inner(in, n_in, out, n_out, stream);
  long value = n_in | 1;
  for (long step = 0; step < KE_EXTRA; ++step) asm volatile("imul %0, %0" : "+r"(value));
  return code;
}
"""
"""``KE_EXTRA`` dependent multiplications after each call: time that is no traffic and that no compiler removes."""


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """``normal`` and ``slow`` differ in the number of extra steps alone. ``slowdown``: measured at length, outside of
    the product's measuring.
    """

    normal: Built
    slow: Built
    slowdown: float


async def draft(operator: OperatorSpec, chip: str) -> tuple[str, tuple[str, ...]]:
    """Source and flags of the schedule synthesizer's default schedule, for one thread."""
    isa = chips.best_isa(chips.load(chip), processor().flags)
    lowering = CapturedLowering(capture_s=CAPTURE_S, operators_max=1)
    lowered = await lowering.lower(operator, Target(language="cpp", isa=isa, threads=1))
    emitted = lowered.render(lowered.space.default())
    return f"#define ke_launch ke_launch_inner\n{emitted.source}\n{AROUND}", tuple(emitted.flags)


async def prepared(
    source: str, flags: tuple[str, ...], toolchain: Toolchain, suite: Suite, settings: Settings, cpus: tuple[int, ...],
    *, slowdown: float,
) -> Kernels:  # fmt: skip
    """Build both, with as many extra steps as cost ``slowdown`` of a call. The caller has the device to itself."""
    build = partial(_build, toolchain, source, flags)
    normal = await build(0)
    call_ns = (await _against(normal, normal, suite, settings, cpus, pairs=1))[1]
    steps = max(100, round(PROBE_SHARE * call_ns / STEP_NS))
    ratio, _ = await _against(await build(steps), normal, suite, settings, cpus, pairs=PROBE_PAIRS)
    wanted = max(1, round(steps * slowdown / max(ratio - 1.0, 1e-3)))
    slow = await build(wanted)
    ratio, _ = await _against(slow, normal, suite, settings, cpus, pairs=PROOF_PAIRS)
    return Kernels(normal=normal, slow=slow, slowdown=ratio - 1.0)


async def _build(toolchain: Toolchain, source: str, flags: tuple[str, ...], extra: int) -> Built:
    built = await toolchain.build(source, (*flags, f"-DKE_EXTRA={extra}"))
    if isinstance(built, BuildFailed):
        raise RuntimeError(f"a draft does not build: {built.evidence}")  # noqa: TRY004 - a value of the port
    return built


async def _against(
    one: Built, other: Built, suite: Suite, settings: Settings, cpus: tuple[int, ...], *, pairs: int
) -> tuple[float, float]:
    """Median over ``pairs`` pairs of processes of the one's time over the other's, and the fastest call in ns."""

    def opened(built: Built) -> Runner:
        return Runner.open(built.path, suite.inputs, suite.outputs, threads=1, cpus=cpus)

    found = [
        await measure(partial(opened, one), partial(opened, other), suite.public[0], settings, rounds=ROUNDS)
        for _ in range(pairs)
    ]
    return statistics.median(pair.interval.ratio for pair in found), min(pair.fastest_ns for pair in found)
