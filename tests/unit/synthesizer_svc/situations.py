"""Situations that prompts are composed in, each with a golden file of the prompt.

``python -m tests.unit.synthesizer_svc.situations`` writes the golden files anew; read the difference before committing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shared import chips
from shared.error_signatures import signature
from shared.events import (
    PPM,
    Bound,
    Diagnosis,
    Entry,
    Evaluation,
    Move,
    MoveOutcome,
    Roofline,
    SkillDistilled,
    SkillStatus,
    Speedup,
    Status,
    Trust,
)
from shared.events.evaluation import CAUGHT_BY
from shared.knowledge import Passage
from synthesizer_svc.prompts import Asking, Prompt, PromptInput, Quoted, compose
from tests.unit.synthesizer_svc.spaces import OPERATOR

GOLDEN = Path(__file__).parent / "golden"
CPU = chips.load("cpu-x86_64")
HOPPER = chips.load("nvidia-sm_90")

CPP = """#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const float* x = static_cast<const float*>(in[0].data);
  float* y = static_cast<float*>(out[0].data);
  for (int64_t i = 0; i < in[0].shape[0]; ++i) y[i] = 2 * x[i];
  return KE_OK;
}
"""
TRITON = """import torch
import triton
import triton.language as tl

@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        twice[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""


def timed(ratio: float, bound: Bound, summary: str, *evidence: tuple[str, str], light: float = 0.43) -> Evaluation:
    """A kernel that passed, ``ratio`` over both baselines, at the share ``light`` of the speed of light."""
    ppm = int(ratio * PPM)
    speedups = tuple(
        Speedup(baseline=name, ratio_ppm=ppm, low_ppm=ppm - 20_000, high_ppm=ppm + 20_000)
        for name in ("eager", "compiled")
    )
    return Evaluation(
        status=Status.PASSED,
        trust=Trust.L3,
        speedups=speedups,
        roofline=Roofline(bytes_min=1 << 20, floor_ns=100_000, fraction_ppm=int(light * PPM)),
        diagnosis=Diagnosis(
            bound=bound, summary=summary, evidence=tuple(Entry(name=name, value=value) for name, value in evidence)
        ),
    )


def refused(status: Status, layer: str, *evidence: tuple[str, str]) -> Evaluation:
    entries = (Entry(name=CAUGHT_BY, value=layer), *(Entry(name=name, value=value) for name, value in evidence))
    return Evaluation(status=status, evidence=entries)


def came_of(
    name: str, evaluation: Evaluation, move: str, *, parents: tuple[str, ...] = (), gain: float = 0, said: str = ""
) -> MoveOutcome:
    speedup = evaluation.speedup()
    return MoveOutcome(
        candidate_id=name,
        parent_ids=parents,
        move=Move(name=move, rationale=said),
        status=evaluation.status,
        bound=evaluation.diagnosis.bound,
        ratio_ppm=speedup.ratio_ppm if speedup else 0,
        gain_ppm=int(gain * PPM),
        signature=signature(evaluation),
    )


MEMORY = timed(
    1.3,
    Bound.MEMORY,
    "memory-bound: 72% of what DRAM can deliver; fewer passes over the data, fusion or streaming stores are left",
    ("measured_ns", "232558"),
    ("memory_floor_ns", "100000 (43%, reaches DRAM)"),
    ("spills", "0"),
)
COMPUTE = timed(1.1, Bound.COMPUTE, "compute-bound: a hot loop calls expf; inline an approximation", light=0.2)
NO_COMPILE = refused(
    Status.COMPILE_ERROR,
    "build",
    (
        "first_error",
        "kernel.cpp:5:12: error: 'vexp' was not declared in this scope\n    5 |   y = vexp(x);\n      |       ^~~~",
    ),
)
WRONG = refused(
    Status.WRONG_RESULT,
    "judge",
    ("reason", "1008 of 8192 elements are wrong"),
    ("first_wrong_index", "1008"),
    ("max_error", "3.0e-01"),
    ("max_error_limit", "1.2e-06"),
)
DRAFT = came_of("c1", COMPUTE, "draft:default")
PARENT = came_of("c4", MEMORY, "rewrite", parents=("c1",), gain=1.18, said="One pass instead of two.")
FAILED = came_of("c5", NO_COMPILE, "rewrite", parents=("c4",), said="Calls a vector exp.")
FAILED_TOO = came_of("c6", NO_COMPILE, "rewrite", parents=("c4",), said="The same with threads.")
SLOWER = came_of("c7", COMPUTE, "pointwise:unroll=8", parents=("c4",), gain=0.846)
OFF = came_of("c8", WRONG, "rewrite", parents=("c4",), said="Drops the tail.")

STREAMS = Passage(
    document_id="guidance/streaming-stores",
    title="Non-temporal (streaming) stores",
    text="# When they pay\n\nA store that bypasses the cache saves the read for ownership.",
    score=29.1,
)
BLOCKING = Passage(
    document_id="guidance/cache-blocking",
    title="Spending cache well",
    text="Count: each tensor read once, each output written once is the minimum.",
    score=20.0,
)
STORES = SkillDistilled(
    skill_id="skill-1",
    move="pointwise:stores=streaming",
    operator_class="pointwise",
    chip="cpu-x86_64",
    language="cpp",
    bound=Bound.MEMORY,
    status=SkillStatus.SUPPORTED,
    ratio_ppm=780_000,
    low_ppm=740_000,
    high_ppm=830_000,
)
CHOICES = """g0.stores: cached (now) or streaming; skips the read for ownership; pays when memory-bound
g0.unroll: 1, 2 (now), 4 or 8; more independent chains against more registers
Form: {"rationale": TEXT, "choices": {NAME: VALUE}}"""

FIRST_DRAFT = PromptInput(
    operator_name="twice",
    operator_source=OPERATOR,
    chip=CPU,
    machine=CPU.isas[1],
    language="cpp",
    flags=("-O3", "-march=x86-64-v3"),
    threads=1,
)
IMPROVE = replace(
    FIRST_DRAFT,
    parents=(Quoted(candidate_id="c4", source=CPP, evaluation=MEMORY, outcome=PARENT),),
    siblings=(Quoted(candidate_id="c7", source=CPP.replace("++i", "i += 1"), outcome=SLOWER),),
    negative=(Quoted(candidate_id="c5", source=CPP.replace("2 * x[i]", "vexp(x[i])"), outcome=FAILED),),
    history=(PARENT, DRAFT),
    setbacks=(FAILED, SLOWER, FAILED_TOO, OFF),
    passages=(STREAMS, BLOCKING),
    skills=(STORES,),
)
TRITON_IMPROVE = replace(
    FIRST_DRAFT,
    chip=HOPPER,
    machine=HOPPER.gpu,
    language="triton",
    flags=(),
    entry="ModelNew",
    parents=(Quoted(candidate_id="c4", source=TRITON, evaluation=MEMORY, outcome=PARENT),),
    passages=(BLOCKING,),
)
BROKEN = CPP.replace("2 * x[i]", "vexp(x[i])")
SITUATIONS = {
    "first_draft_cpp": FIRST_DRAFT,
    "improve_memory_bound": IMPROVE,
    "edits_of_memory_bound": replace(IMPROVE, asking=Asking.EDITS, siblings=(), negative=(), passages=()),
    "failed_compile": replace(
        FIRST_DRAFT,
        parents=(Quoted(candidate_id="c5", source=BROKEN, evaluation=NO_COMPILE, outcome=FAILED),),
        history=(FAILED, PARENT, DRAFT),
        setbacks=(OFF, FAILED_TOO, SLOWER),
        negative=(Quoted(candidate_id="c6", source=BROKEN, outcome=FAILED_TOO),),
    ),
    "wrong_result": replace(
        FIRST_DRAFT,
        parents=(Quoted(candidate_id="c8", source=CPP, evaluation=WRONG, outcome=OFF),),
        history=(OFF, PARENT, DRAFT),
    ),
    "crossover": replace(
        FIRST_DRAFT,
        parents=(
            Quoted(candidate_id="c4", source=CPP, evaluation=MEMORY, outcome=PARENT),
            Quoted(candidate_id="c1", source=CPP.replace("2 * x[i]", "x[i] + x[i]"), evaluation=COMPUTE, outcome=DRAFT),
        ),
        history=(PARENT, DRAFT),
    ),
    "clean_with_negative_memory": replace(
        FIRST_DRAFT,
        negative=(Quoted(candidate_id="c5", source=BROKEN, outcome=FAILED),),
        setbacks=(FAILED, FAILED_TOO, OFF),
        skills=(STORES,),
    ),
    "triton_on_nvidia": TRITON_IMPROVE,
    "moves": replace(IMPROVE, asking=Asking.MOVES, choices=CHOICES),
}


def path_of(name: str) -> Path:
    return GOLDEN / f"prompt_{name}.txt"


def as_text(prompt: Prompt) -> str:
    return f"{prompt.system}\n\n=== user ===\n\n{prompt.user}\n"


def main() -> None:
    for name, given in SITUATIONS.items():
        path_of(name).write_text(as_text(compose(given)), encoding="utf-8")


if __name__ == "__main__":
    main()
