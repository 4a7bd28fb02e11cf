"""The verdict on a kernel that was counted, and a worker's trial of its own emulator."""

from __future__ import annotations

import secrets
import time
from array import array
from collections.abc import Sequence

from evaluator_svc.canary import Finding
from evaluator_svc.emulated.counts import Seen, estimate, named, terms
from evaluator_svc.emulated.process import EmulatedRunner
from evaluator_svc.judge import Verdict
from evaluator_svc.layers import Layer, caught
from evaluator_svc.runner.process import Ran
from evaluator_svc.sandbox import lowered
from evaluator_svc.target import Target
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built, Toolchain
from shared.chips import Cycles
from shared.dtypes import DType
from shared.errors import ChipError, Fatal
from shared.events import Bound, Diagnosis, Entry, Evaluation, Status, Trust

SOURCE = """
#include "ke_abi.h"
int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {
  const float *a = in[0].data;
  float *b = out[0].data;
  for (int64_t i = 0; i < in[0].shape[0]; ++i) b[i] = a[i] + a[i];
  return KE_OK;
}
"""
ELEMENTS = 1 << 10


def verdict(seen: Sequence[Seen], cycles: Cycles, checked: Verdict, level: str, built: str) -> Evaluation:
    """Passed at L3 where all counts are equal. One whose counts differ on equal inputs reads a clock or an
    address: then no count is its cost.
    """
    totals = [next(count.value for count in named(one) if count.name == "instructions") for one in seen]
    if any(one != seen[0] for one in seen):
        said = Entry(name="reason", value=f"counts of equal calls differ: {', '.join(map(str, totals))} instructions")
        return Evaluation(status=Status.NONDETERMINISTIC, evidence=(caught(Layer.DETERMINISM), said), sandbox=level)
    evidence = (
        Entry(name="counted", value=f"{len(seen)} calls in processes of their own, each the same; nothing was timed"),
        Entry(name="build_sandbox", value=built),
    )
    return Evaluation(
        status=Status.PASSED,
        trust=lowered(Trust.L3, level, built),
        evidence=(*checked.evidence, *evidence),
        sandbox=level,
        estimate=estimate(seen[0], cycles),
        diagnosis=diagnose(seen[0], cycles),
    )


def diagnose(seen: Seen, cycles: Cycles) -> Diagnosis:
    """Which term of the model is the largest."""
    parts = terms(seen, cycles)
    total = sum(parts.values()) or 1.0
    largest = max(parts, key=lambda name: parts[name])
    bound = Bound.MEMORY if largest == "memory" else Bound.COMPUTE
    advice = {
        "memory": "fewer passes over the data, contiguous instead of strided accesses",
        "vector": "fewer vector operations an element, fewer reductions",
        "scalar": "longer vectors (a larger LMUL), more work an iteration, fewer settings",
    }
    evidence = tuple(Entry(name=f"modelled_{name}_cycles", value=f"{value:.0f}") for name, value in parts.items())
    share = f"{parts[largest] / total:.0%} of the modelled cycles are {largest} work; {advice[largest]} help"
    return Diagnosis(bound=bound, evidence=evidence, summary=share)


async def probe(toolchain: Toolchain, target: Target) -> Finding:
    """Build, run and count a kernel that no cache has seen, on values that nobody has."""
    begun = time.monotonic()
    fault = ""
    try:
        fault = await _fault(toolchain, target)
    except (ChipError, Fatal, OSError) as error:
        fault = str(error)
    return Finding(fault=fault, tried=("doubles",), seconds=time.monotonic() - begun)


async def _fault(toolchain: Toolchain, target: Target) -> str:
    assert target.vector is not None
    built = await toolchain.build(f"{SOURCE}// {secrets.token_hex(8)}\n", ("-O1",), language="c-rvv")
    if not isinstance(built, Built):
        return "a kernel that is right does not build"
    spec = TensorSpec(shape=(ELEMENTS,), dtype=DType.F32)
    values = array("f", [secrets.randbits(12) for _ in range(ELEMENTS)])
    async with EmulatedRunner(built.path, (spec,), (spec,), unit=target.vector, sets=1) as runner:
        runner.write_input(0, 0, values)
        ran = await runner.run(1)
        got = list(runner.output_bytes(0, 0).cast("f"))
    if not isinstance(ran, Ran) or runner.seen is None:
        return "a kernel that is right does not run"
    if got != [2 * value for value in values]:
        return "a kernel that is right came out wrong"
    if runner.seen.stored < 4 * ELEMENTS or runner.seen.loaded < 4 * ELEMENTS:
        return "loads and stores are not counted"
    return ""
