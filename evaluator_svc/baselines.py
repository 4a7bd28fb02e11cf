"""The controller's side of the baseline process: eager and compiled PyTorch on inputs that the controller writes.

Its blocks are as a candidate's: every call on a set of inputs of its own, every output kept until its set is used
again, all of it out of the caches before the block begins. Its values stay, because nobody there remembers.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from evaluator_svc.arrays import on_host
from evaluator_svc.freshness import Fresh
from evaluator_svc.oracle import new_seed
from evaluator_svc.runner.program import stopwatch_library
from evaluator_svc.target import Target
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.trusted_child import TrustedChild
from shared.contract import Contract
from shared.events import OperatorRef

EAGER, COMPILED = "eager", "compiled"
LOAD_S = 60.0
COOL_S = 60.0
ALIGNMENT = 64
UNMUTATED = Contract()


class Baselines:
    """Both baselines of one operator behind a ``TrustedChild`` in role ``baseline``.

    Methods raise ``OperatorError`` and ``OracleLost``.
    """

    def __init__(self, child: TrustedChild, operator: OperatorRef, scratch: Path, *, target: Target) -> None:
        self._child, self._operator, self._scratch, self._target = child, operator, scratch, target
        self._stale = False
        self._filled = 0
        """Sets that hold values of a pool."""
        self._draws = 1
        """On a GPU: how many are in shared memory, of which the device's sets are copies."""
        self.sets = 0
        """Of inputs, over which blocks may rotate."""
        self.own_ns = 0
        """What the last ``run`` took by the child's own clock, without the way to it and back,"""
        self.device_ns: int | None = None
        """and on a GPU by the device's, from before the first call to after the last."""
        self._rows: list[NDArray[np.uint8]] = []
        """By input: sets x bytes."""
        self.names: tuple[str, ...] = (EAGER,)
        self.unavailable = ""
        """Why there is no compiled baseline, or empty."""

    async def open(
        self,
        source: str,
        inputs: Sequence[TensorSpec],
        *,
        sets: int = 1,
        draws: int = 1,
        contract: Contract = UNMUTATED,
        threads: int,
        timeout_s: float,
    ) -> None:
        """Load the operator and place ``sets`` sets of its inputs, parameters and buffers in memory shared with this
        process. By ``contract`` parameters may be those of the first set in every call. On a GPU the sets are copies on
        the device of at most ``draws`` in shared memory.
        """
        fields = {"role": "baseline", "source": source, "name": self._operator.name}
        device = self._target.torch_device
        await self._child.ask("open", timeout_s=timeout_s, threads=threads, seed=new_seed(), device=device, **fields)
        layout, stride = [], 0
        for spec in inputs:
            layout.append({"shape": list(spec.shape), "dtype": spec.dtype.value, "offset": stride})
            stride += -(-max(spec.nbytes, 1) // ALIGNMENT) * ALIGNMENT
        draws = min(draws, sets) if self._target.on_gpu else sets
        path = self._scratch / "baseline-inputs"
        with path.open("w+b") as file:
            file.truncate(draws * stride)
            memory = np.frombuffer(mmap.mmap(file.fileno(), draws * stride), dtype=np.uint8)
        shared = {"path": str(path), "blocks": layout, "sets": sets, "draws": draws, "stride": stride}
        try:
            await self._child.ask(
                "attach",
                timeout_s=timeout_s,
                cooler=str(stopwatch_library()),
                bound_once=contract.persistent_weights,
                **shared,
            )
        finally:
            path.unlink()
        self.sets = sets
        self._rows = [
            as_strided(memory[int(str(block["offset"])) :], shape=(draws, spec.nbytes), strides=(stride, 1))
            for spec, block in zip(inputs, layout, strict=True)
        ]

    def write(self, sets: Iterable[int], inputs: Sequence[NDArray[np.uint8]]) -> None:
        """Overwrite what both baselines read in these sets."""
        places = list(sets)
        for rows, data in zip(self._rows, inputs, strict=True):
            here = on_host(data)
            for set_ in places:
                rows[set_] = here
        self._stale = self._target.on_gpu

    def fill(self, pool: Sequence[Fresh], span: int, *, again: bool = False) -> None:
        """Have the first ``span`` sets hold draws of ``pool``, in turn; ``again``: whatever they hold."""
        if self._target.on_gpu:  # all sets there, once
            draws = min(len(pool), len(self._rows[0])) if self._rows else 1
            if not self._filled:
                for draw in range(draws):
                    self.write((draw,), pool[draw].case.inputs)
            self._filled, self._draws, self._stale = self.sets, draws, self._stale or again
            return
        for set_ in range(0 if again else self._filled, span):
            self.write((set_,), pool[set_ % len(pool)].case.inputs)
        self._filled = max(self._filled, span)

    async def compile(self, *, timeout_s: float) -> None:
        """Prepare the compiled baseline; when that fails, ``unavailable`` says why. Inputs must be written before."""
        await self._refresh()
        said = await self._child.ask("compile", timeout_s=timeout_s, seed=new_seed())
        self.unavailable = said.get("unavailable", "")
        self.names = (EAGER,) if self.unavailable else (EAGER, COMPILED)

    async def cool(self, first: int, calls: int, span: int, *, outputs: bool) -> None:
        """Have no cache hold the inputs (and ``outputs``) of the sets of ``calls`` calls from ``first`` on."""
        await self._refresh()
        await self._child.ask("cool", timeout_s=COOL_S, first=first, calls=calls, span=span, outputs=outputs)

    async def run(self, which: str, calls: int, *, first: int = 0, span: int = 1, timeout_s: float) -> int:
        """Run ``calls`` calls, call i on set ``(first + i) mod span``; their time in ns by the controller's clock."""
        await self._refresh()
        elapsed, said = await self._child.timed(
            "run", timeout_s=timeout_s, which=which, calls=calls, first=first, span=span
        )
        self.own_ns = max(1, int(said["own_ns"]))
        device_ns = said["device_ns"]
        self.device_ns = None if device_ns is None else max(1, int(device_ns))
        return max(1, elapsed)

    async def _refresh(self) -> None:
        """Have the device's copies of the inputs renewed, if they are old."""
        if self._stale:
            await self._child.ask("load", timeout_s=LOAD_S, draws=self._draws)
            self._stale = False
