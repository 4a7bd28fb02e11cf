"""Kernels under QEMU: what they may do, how each that does more ends, and that counts are exact."""

from __future__ import annotations

import asyncio
import functools
import shutil
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from evaluator_svc.emulated import counts
from evaluator_svc.emulated.counts import Seen
from evaluator_svc.emulated.process import EmulatedRunner
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Ran
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import BuildFailed, Built
from evaluator_svc.toolchains.riscv import CROSS, RiscvToolchain
from shared import chips
from shared.dtypes import DType
from tests.integration.emulated.rvv_kernels import VADD, WRONG_DOERS

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        bool(chips.missing_tools(chips.load("riscv-rvv"))) or not CROSS.is_dir() or shutil.which("g++") is None,
        reason="the tools of riscv-rvv are not installed",
    ),
]

N = 16384
SPEC = TensorSpec(shape=(N,), dtype=DType.F32)
UNIT = chips.load("riscv-rvv").vector
FLAGS = ("-O3", *UNIT.flags)


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def synchronous(**arguments: Any) -> None:
        asyncio.run(test(**arguments))

    return synchronous


async def built(source: str) -> Built:
    made = await RiscvToolchain().build(source, FLAGS)
    assert isinstance(made, Built), made
    return made


async def ran(source: str, calls: int = 1, timeout_s: float = 20.0) -> tuple[Ran | RunFailure, Seen | None, bool]:
    """How it ended, what was counted, and whether the sum is right."""
    program = await built(source)
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((2, N)).astype(np.float32)
    async with EmulatedRunner(program.path, (SPEC, SPEC), (SPEC,), unit=UNIT, sets=2) as runner:
        for set_ in range(2):
            runner.write_input(set_, 0, x)
            runner.write_input(set_, 1, y)
        outcome = await runner.run(calls, timeout_s=timeout_s)
        right = all(np.array_equal(np.frombuffer(runner.output_bytes(s, 0), np.float32), x + y) for s in range(calls))
    return outcome, runner.seen, right


@run
async def test_a_vector_sum_is_counted_the_same_each_time_and_like_the_hand_written_sketch():
    results = [await ran(VADD) for _ in range(3)]
    assert all(isinstance(outcome, Ran) and right for outcome, _, right in results), results
    seen = [one for _, one, _ in results]
    assert seen[0] == seen[1] == seen[2]
    told = {count.name: count.value for count in counts.named(seen[0])}
    assert told["instructions"] <= 2826
    assert told["vector_instructions"] == 4 * N * 32 // (8 * 256)
    assert told["vector_work"] == 4 * N * 32 // 256
    assert told["bytes_stored"] == 4 * N
    assert 8 * N <= told["bytes_loaded"] <= 8 * N + 64


@run
async def test_two_calls_in_one_process_count_twice_one():
    (one, first, _), (two, both, right) = await ran(VADD), await ran(VADD, calls=2)
    assert isinstance(one, Ran)
    assert isinstance(two, Ran)
    assert right
    assert {name: 2 * n for name, n in first.count.items()} == both.count
    assert {name: 2 * n for name, n in first.work.items()} == both.work


@pytest.mark.parametrize("name", WRONG_DOERS)
@run
async def test_who_leaves_the_rules_ends_by_the_rule(name: str):
    source, expected = WRONG_DOERS[name]
    outcome, seen, right = await ran(source, timeout_s=2.0 if expected == "TIMEOUT" else 20.0)
    if expected == "RIGHT":
        assert isinstance(outcome, Ran), outcome
        assert right
        assert seen.begun == seen.ended == 1
        return
    assert isinstance(outcome, RunFailure), outcome
    status = outcome.status.value
    assert status == expected or (expected == "ANY" and status in ("CHEAT", "RUNTIME_ERROR")), outcome


@pytest.mark.parametrize("flag", ["-fplugin=x.so", "-mllvm", "-Wl,-e,mine", "-nostdlib", "-fuse-ld=bfd", "-T", "@file"])
@run
async def test_flags_that_reach_beyond_code_generation_are_refused(flag: str):
    made = await RiscvToolchain().build(VADD, (flag,))
    assert isinstance(made, BuildFailed)
    assert flag in made.evidence[1].value


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("int ke_launch(void) { return", "error"),
        ("int other(void) { return 0; }", "ke_launch"),
        ("int ke_launch(void) { return 0; } void ke_start(void) {}", "duplicate"),
    ],
)
@run
async def test_what_does_not_build_says_why(source: str, why: str):
    made = await RiscvToolchain().build(source, FLAGS)
    assert isinstance(made, BuildFailed)
    assert any(why in entry.value for entry in made.evidence), made
