"""A kernel's second process, in the place of the baselines: what a measurement of equal kernels is made against."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from evaluator_svc.block_sets import sets_for
from evaluator_svc.cases import Suite
from evaluator_svc.freshness import Fresh
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.runner.process import Ran, Runner
from evaluator_svc.settings import TimingSettings
from evaluator_svc.toolchains import Built

TWIN = "twin"


class Twin:
    """What ``timing.Contest`` needs of ``baselines.Baselines``."""

    def __init__(self, built: Built, suite: Suite, cpus: tuple[int, ...]) -> None:
        self.names = (TWIN,)
        self.own_ns = 0
        self.device_ns: int | None = None
        self.sets = sets_for(suite, TimingSettings())
        self._filled = 0
        self._runner = Runner.open(
            built.path, suite.inputs, suite.outputs, sets=self.sets, threads=1, cpus=cpus, spacing=Spacing.DENSE
        )

    async def __aenter__(self) -> Self:
        await self._runner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._runner.__aexit__(kind, error, at)

    def fill(self, pool: Sequence[Fresh], span: int, *, again: bool = False) -> None:
        """Have the first ``span`` sets hold draws of ``pool``, in turn; ``again``: whatever they hold."""
        for set_ in range(0 if again else self._filled, span):
            for index, data in enumerate(pool[set_ % len(pool)].case.inputs):
                self._runner.write_input(set_, index, data)
        self._filled = max(self._filled, span)

    async def cool(self, first: int, calls: int, span: int, *, outputs: bool) -> None:
        """Have no cache hold a byte of the sets that ``run`` is going to use."""
        assert outputs, "it is a native kernel, as the other"
        for begin, count in _stretches(first, calls, span):
            self._runner.cool(begin, count)

    async def run(self, which: str, calls: int, *, first: int = 0, span: int = 1, timeout_s: float) -> int:
        """Time of ``calls`` calls in ns by the controller's clock, call i on a set of its own below ``span``."""
        assert which == TWIN
        del span  # sets beyond it are as good, once they are filled
        ran = await self._runner.run(calls, first, timeout_s)
        if not isinstance(ran, Ran) or ran.return_code != 0:
            raise RuntimeError(f"the twin failed: {ran}")
        self.own_ns = ran.runner_ns
        return ran.elapsed_ns


def _stretches(first: int, calls: int, span: int) -> tuple[tuple[int, int], ...]:
    end = first + calls
    return ((first, calls),) if end <= span else ((first, span - first), (0, end - span))
