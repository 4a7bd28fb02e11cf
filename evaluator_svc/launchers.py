"""Which runner runs what was built: the C ABI's boxed program, or a forked child with torch in it."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator_svc.runner.process import Runner, RunnerLimits
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built


def open_runner(
    built: Built,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    *,
    sets: int,
    limits: RunnerLimits,
    threads: int,
    cpus: tuple[int, ...],
    stained: bool = False,
) -> Runner:
    """A runner for ``built``, to be entered as an asynchronous context; see ``runner.process.Runner.open``."""
    return Runner.open(
        built.path, inputs, outputs, sets=sets, limits=limits, threads=threads, cpus=cpus, stained=stained
    )
