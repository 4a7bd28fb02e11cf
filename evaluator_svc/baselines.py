"""The controller's side of the baseline process: eager and compiled PyTorch on inputs the controller rewrites."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.oracle import new_seed
from evaluator_svc.target import Target
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.trusted_child import TrustedChild
from shared.events import OperatorRef

EAGER, COMPILED, FLUSH = "eager", "compiled", "flush"
LOAD_S = 60.0
FLUSH_CALLS = 200
ALIGNMENT = 64


class Baselines:
    """Both baselines of one operator behind a ``TrustedChild`` in role ``baseline``.

    Methods raise ``OperatorError`` and ``OracleLost``.
    """

    def __init__(self, child: TrustedChild, operator: OperatorRef, scratch: Path, *, target: Target) -> None:
        self._child, self._operator, self._scratch, self._target = child, operator, scratch, target
        self._stale = False
        self.flush_ns = 0.0
        """What emptying the cache costs before each call, by the controller's clock; 0 where it is not done."""
        self.own_ns = 0
        """What the last ``run`` took by the child's own clock, without the way to it and back."""
        self._views: list[NDArray[np.uint8]] = []
        self.names: tuple[str, ...] = (EAGER,)
        self.unavailable = ""
        """Why there is no compiled baseline, or empty."""

    async def open(self, source: str, inputs: Sequence[TensorSpec], *, threads: int, timeout_s: float) -> None:
        """Load the operator and place its inputs, parameters and buffers in memory shared with this process."""
        fields = {"role": "baseline", "source": source, "name": self._operator.name}
        device = self._target.torch_device
        await self._child.ask("open", timeout_s=timeout_s, threads=threads, seed=new_seed(), device=device, **fields)
        layout, offset = [], 0
        for spec in inputs:
            layout.append({"shape": list(spec.shape), "dtype": spec.dtype.value, "offset": offset})
            offset += -(-spec.nbytes // ALIGNMENT) * ALIGNMENT
        path = self._scratch / "baseline-inputs"
        with path.open("w+b") as file:
            file.truncate(offset)
            memory = mmap.mmap(file.fileno(), offset)
        try:
            await self._child.ask("attach", timeout_s=timeout_s, path=str(path), blocks=layout)
        finally:
            path.unlink()
        self._views = [
            np.frombuffer(memory, dtype=np.uint8, count=spec.nbytes, offset=int(str(block["offset"])))
            for spec, block in zip(inputs, layout, strict=True)
        ]

    def write_inputs(self, inputs: Sequence[NDArray[np.uint8]]) -> None:
        """Overwrite what both baselines read."""
        for view, data in zip(self._views, inputs, strict=True):
            view[:] = data
        self._stale = self._target.on_gpu

    async def compile(self, *, timeout_s: float) -> None:
        """Prepare the compiled baseline; when that fails, ``unavailable`` says why. Inputs must be written before."""
        await self._refresh()
        said = await self._child.ask("compile", timeout_s=timeout_s, seed=new_seed())
        self.unavailable = said.get("unavailable", "")
        self.names = (EAGER,) if self.unavailable else (EAGER, COMPILED)
        if self._target.on_gpu:
            for _ in range(2):  # the first warms up
                elapsed, _ = await self._child.timed("run", timeout_s=timeout_s, which=FLUSH, calls=FLUSH_CALLS)
            self.flush_ns = elapsed / FLUSH_CALLS

    async def run(self, which: str, calls: int, *, timeout_s: float) -> int:
        """Run ``calls`` calls; their time in ns by the controller's clock, less that of the flushes between them."""
        await self._refresh()
        elapsed, said = await self._child.timed("run", timeout_s=timeout_s, which=which, calls=calls)
        self.own_ns = max(1, int(said["own_ns"]) - round(calls * self.flush_ns))
        return max(1, elapsed - round(calls * self.flush_ns))

    async def _refresh(self) -> None:
        """Have the device's copies of the inputs renewed, if they are old."""
        if self._stale:
            await self._child.ask("load", timeout_s=LOAD_S)
            self._stale = False
