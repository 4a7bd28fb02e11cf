"""An evaluator on this machine for tests: real compiler, boxes, torch processes; measurements small and never noisy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator_svc.evaluate import Evaluator
from evaluator_svc.settings import ContentionLimits, Limits, Settings, TimingSettings
from evaluator_svc.toolchains.cpu import CpuToolchain
from shared import ids, operators
from shared.events import Evaluation, EvaluationRequested, KernelRef, Purpose
from shared.operators import OperatorSpec
from shared.ports import Ports, open_ports
from shared.settings import PortSettings

ROOT = Path(__file__).parents[3]
OPERATOR = ROOT / "tests" / "operators" / "row_softmax.py"
KERNELS = ROOT / "tests" / "kernels"
CHIP = "cpu-x86_64"
ANY_MOMENT = TimingSettings(
    rounds=11,
    rounds_max=11,
    final_rounds=6,
    final_rounds_max=6,
    final_processes=2,
    block_ns=400_000,
    drift_ppm=10**12,
    spread_ppm=10**12,
)
"""Tests gate on no timing: no moment is too noisy for them."""
ANYBODY = ContentionLimits(foreign_ppm=10**12, waiting_ppm=10**12, steal_ppm=10**12, frequency_ppm=10**12)
SETTINGS = Settings(limits=Limits(call_s=2.0, kernel_memory_bytes=1 << 30), timing=ANY_MOMENT, contention=ANYBODY)


def kernel_source(name: str) -> str:
    return (KERNELS / f"{name}.cpp").read_text()


@dataclass(frozen=True, kw_only=True)
class Bench:
    """An evaluator with its ports on a loop that outlives single tests."""

    evaluator: Evaluator
    ports: Ports
    loop: asyncio.Runner

    def evaluate(
        self,
        source: str,
        *,
        operator: OperatorSpec | None = None,
        purpose: Purpose = Purpose.SEARCH,
        flags: tuple[str, ...] = ("-O2",),
    ) -> Evaluation:
        async def go() -> Evaluation:
            return await self.evaluator.evaluate(await request_for(self.ports, source, operator, purpose, flags))

        return self.loop.run(go())

    def admit(self, operator: OperatorSpec) -> None:
        async def go() -> None:
            await admit(self.ports, self.evaluator, operator)

        self.loop.run(go())


async def admit(ports: Ports, evaluator: Evaluator, operator: OperatorSpec) -> None:
    await ports.store.blobs.put(operator.source.encode())
    await evaluator.admit(operator.ref, 1)


async def request_for(
    ports: Ports,
    source: str,
    operator: OperatorSpec | None = None,
    purpose: Purpose = Purpose.SEARCH,
    flags: tuple[str, ...] = ("-O2",),
) -> EvaluationRequested:
    spec = operator or operators.load(OPERATOR)
    await ports.store.blobs.put(spec.source.encode())
    digest = await ports.store.blobs.put(source.encode())
    kernel = KernelRef(
        kernel_id=ids.derive("cpp", digest, *flags, "ke_launch"), language="cpp", source_hash=digest, flags=flags
    )
    return EvaluationRequested(
        search_id="search",
        evaluation_id=ids.derive("evaluation", digest),
        candidate_id=ids.derive("candidate", digest),
        kernel=kernel,
        operator=spec.ref,
        chip=CHIP,
        purpose=purpose,
    )


@asynccontextmanager
async def opened(settings: Settings = SETTINGS) -> AsyncIterator[tuple[Ports, Evaluator]]:
    async with open_ports(PortSettings(store_url="memory:")) as ports:
        evaluator = Evaluator(ports, settings, CpuToolchain())
        try:
            yield ports, evaluator
        finally:
            await evaluator.close()


@contextmanager
def bench(settings: Settings = SETTINGS) -> Iterator[Bench]:
    with asyncio.Runner() as loop:
        context = opened(settings)
        ports, evaluator = loop.run(context.__aenter__())
        try:
            yield Bench(evaluator=evaluator, ports=ports, loop=loop)
        finally:
            loop.run(context.__aexit__(None, None, None))


def evidence(evaluation: Evaluation) -> dict[str, Any]:
    return {entry.name: entry.value for entry in evaluation.evidence}
