"""Runs ``ModelNew`` modules for row softmax of f32[64, 1000], right or misbehaving, each in a process of its own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import on_host
from evaluator_svc.hosted.process import HostedRunner, Hosts
from evaluator_svc.runner.box import RunnerLimits
from evaluator_svc.runner.process import Ran, RunFailure
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built
from shared.dtypes import DType

SHAPE = (64, 1000)
SPEC = TensorSpec(shape=SHAPE, dtype=DType.F32)
ONE_TENSOR = Signature(arguments=(None,))
LIMITS = RunnerLimits(memory_bytes=1 << 30, load_s=30.0)
FORWARD = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        {body}
"""
RIGHT = FORWARD.format(body="return torch.softmax(x, dim=-1)")


def forward(*lines: str, before: str = "") -> str:
    """A module whose forward is ``lines``, after ``before`` at its top level."""
    return before + FORWARD.format(body="\n        ".join(lines))


def values(seed: int = 0, shape: Sequence[int] = SHAPE) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(np.float32)


def softmax(x: NDArray[np.float32]) -> NDArray[np.float32]:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def array_of(runner: HostedRunner, set_: int = 0, output: int = 0, spec: TensorSpec = SPEC) -> NDArray[Any]:
    kinds = {DType.F32: np.float32, DType.I64: np.int64}
    return np.frombuffer(on_host(runner.output_bytes(set_, output)), dtype=kinds[spec.dtype]).reshape(spec.shape).copy()


def said(outcome: Ran | RunFailure) -> str:
    """Status and evidence of a failure in one line."""
    assert isinstance(outcome, RunFailure), outcome
    return f"{outcome.status.value}; " + "; ".join(f"{one.name}={one.value}" for one in outcome.evidence)


@dataclass(frozen=True)
class Lab:
    """Fork servers on a loop that outlives single tests."""

    hosts: Hosts
    loop: asyncio.Runner
    directory: Path

    def open(self, text: str, **options: Any) -> HostedRunner:
        path = self.directory / "module.py"
        path.write_text(text)
        built = Built(path=path, digest="", log="", build_ns=0, sandbox="", host="hosted", language="python")
        given = {"signature": ONE_TENSOR, "limits": LIMITS, "inputs": [SPEC], "outputs": [SPEC], **options}
        return HostedRunner.open(self.hosts, built, **given)

    def outcome(self, text: str, *, calls: int = 1, timeout_s: float = 10.0, **options: Any) -> Ran | RunFailure:
        """Load it, and call it on values."""

        async def go() -> Ran | RunFailure:
            async with self.open(text, **options) as runner:
                runner.write_input(0, 0, values())
                return await runner.run(calls, timeout_s=timeout_s)

        return self.loop.run(go())

    def result(self, text: str, *inputs: NDArray[Any], spec: TensorSpec = SPEC, **options: Any) -> NDArray[Any]:
        """What it returns for ``inputs``."""

        async def go() -> NDArray[Any]:
            async with self.open(text, outputs=[spec], **options) as runner:
                for index, data in enumerate(inputs):
                    runner.write_input(0, index, data)
                ran = await runner.run(1)
                assert isinstance(ran, Ran), said(ran)
                return array_of(runner, spec=spec)

        return self.loop.run(go())


@contextmanager
def lab() -> Iterator[Lab]:
    hosts = Hosts()
    with tempfile.TemporaryDirectory() as directory, asyncio.Runner() as loop:
        try:
            yield Lab(hosts, loop, Path(directory))
        finally:
            hosts.close()
