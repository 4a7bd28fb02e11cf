"""Builds and runs the kernels of ``tests/kernels``: row softmax of f32[64, 1000], right or misbehaving."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

from evaluator_svc.runner.process import Ran, RunFailure, Runner
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import BuildFailed, Built
from evaluator_svc.toolchains.cpu import CpuToolchain
from shared.dtypes import DType

KERNELS = Path(__file__).parents[2] / "kernels"
ROWS, COLUMNS = 64, 1000
SPEC = TensorSpec(shape=(ROWS, COLUMNS), dtype=DType.F32)
INPUT = array("f", [math.sin(i * 0.37) * 3 for i in range(ROWS * COLUMNS)])


def source(name: str) -> str:
    return (KERNELS / f"{name}.cpp").read_text()


async def build(name: str, *flags: str) -> Built:
    built = await CpuToolchain().build(source(name), ["-O2", *flags])
    assert isinstance(built, Built), built
    return built


async def build_failure(name: str) -> BuildFailed:
    built = await CpuToolchain().build(source(name), ["-O2"])
    assert isinstance(built, BuildFailed), built
    return built


async def outcome(name: str, *, timeout_s: float = 10.0) -> Ran | RunFailure:
    """Build, load, and call once."""
    built = await build(name)
    async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
        runner.write_input(0, 0, INPUT)
        return await runner.run(1, timeout_s=timeout_s)


async def right_still_passes() -> None:
    """A fresh evaluation of the right kernel gives the softmax: nothing of an earlier one is left."""
    built = await build("right")
    async with Runner.open(built.path, [SPEC], [SPEC], sets=2) as runner:
        runner.write_input(1, 0, INPUT)
        ran = await runner.run(1, first_set=1)
        assert isinstance(ran, Ran), ran
        assert ran.return_code == 0
        got = runner.output_bytes(1, 0).cast("f")
        assert max(abs(a - b) for a, b in zip(got, expected(), strict=True)) < 1e-6


def expected() -> list[float]:
    result: list[float] = []
    for row in range(ROWS):
        exponentials = [math.exp(v) for v in INPUT[row * COLUMNS : (row + 1) * COLUMNS]]
        total = sum(exponentials)
        result += [v / total for v in exponentials]
    return result


def evidence(failure: RunFailure | BuildFailed) -> str:
    return "; ".join(f"{entry.name}={entry.value}" for entry in failure.evidence)
