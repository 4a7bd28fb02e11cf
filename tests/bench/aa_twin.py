"""A kernel's second process, in the place of the baselines: what a measurement of equal kernels is made against."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.cases import Suite
from evaluator_svc.runner.process import Ran, Runner
from evaluator_svc.toolchains import Built

TWIN = "twin"


class Twin:
    """What ``timing.Contest`` needs of ``baselines.Baselines``."""

    def __init__(self, built: Built, suite: Suite, cpus: tuple[int, ...]) -> None:
        self.names = (TWIN,)
        self.flush_ns = 0.0
        self.own_ns = 0
        self._runner = Runner.open(built.path, suite.inputs, suite.outputs, threads=1, cpus=cpus)

    async def __aenter__(self) -> Self:
        await self._runner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._runner.__aexit__(kind, error, at)

    def write_inputs(self, inputs: Sequence[NDArray[np.uint8]]) -> None:
        """Overwrite what it reads."""
        for index, data in enumerate(inputs):
            self._runner.write_input(0, index, data)

    async def run(self, which: str, calls: int, *, timeout_s: float) -> int:
        """Time of ``calls`` calls in ns by the controller's clock."""
        assert which == TWIN
        ran = await self._runner.run(calls, 0, timeout_s)
        if not isinstance(ran, Ran) or ran.return_code != 0:
            raise RuntimeError(f"the twin failed: {ran}")
        self.own_ns = ran.runner_ns
        return ran.elapsed_ns
