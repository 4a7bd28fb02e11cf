"""Evaluators for the suite: the product's own, with real compilers, boxes and clocks; no moment is too noisy for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from evaluator_svc.evaluators import Evaluates, evaluator_of
from evaluator_svc.settings import Limits, Settings
from shared import ids, operators
from shared.errors import OperatorError
from shared.events import Evaluation, EvaluationRequested, KernelRef, Purpose
from shared.operators import OperatorSpec
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from tests.cheats.manifest import OPERATORS, Candidate
from tests.integration.evaluator.pipeline import ANY_MOMENT

SETTINGS = Settings(
    limits=Limits(call_s=2.0, kernel_memory_bytes=1 << 30),
    timing=replace(ANY_MOMENT, block_ns=1_000_000, hopeless_rounds=8),
)
"""Blocks long enough for the clocks that are a defence, and enough of them of a cheat that is slow where it works. How
much blocks scatter is not at issue here, but whether others use the cores is: a kernel that was held up must not be
accused."""


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """One chip's evaluator. Candidates of one operator belong together: it keeps few operators' processes."""

    chip: str
    evaluator: Evaluates
    ports: Ports
    loop: asyncio.Runner

    async def evaluate(self, candidate: Candidate) -> Evaluation:
        spec = _load(candidate.operator)
        await self.ports.store.blobs.put(spec.source.encode())
        digest = await self.ports.store.blobs.put(candidate.source.encode())
        kernel = KernelRef(
            kernel_id=ids.derive(candidate.language, digest, *candidate.build_flags, "ke_launch"),
            language=candidate.language.value,
            source_hash=digest,
            flags=candidate.build_flags,
        )
        request = EvaluationRequested(
            search_id="cheats",
            evaluation_id=ids.derive("evaluation", digest, candidate.operator),
            candidate_id=ids.derive("candidate", digest),
            kernel=kernel,
            operator=spec.ref,
            chip=self.chip,
            purpose=Purpose.SEARCH,
            threads=candidate.threads,
        )
        return await self.evaluator.evaluate(request)

    async def refusal(self, operator: str) -> str:
        """Why ``operator`` is not admitted; empty when it is."""
        spec = _load(operator)
        await self.ports.store.blobs.put(spec.source.encode())
        try:
            await self.evaluator.admit(spec.ref, 1)
        except OperatorError as error:
            return str(error)
        return ""


def _load(operator: str) -> OperatorSpec:
    return operators.load(OPERATORS / f"{operator}.py")


@contextmanager
def workplace(chip: str) -> Iterator[Workplace]:
    """An evaluator of ``chip`` with its ports, on a loop that outlives single candidates.

    Raises:
        ChipError: this machine cannot serve ``chip``.
    """
    settings = replace(SETTINGS, chip=chip)
    with asyncio.Runner() as loop:
        context = open_ports(PortSettings(store_url="memory:"))
        ports = loop.run(context.__aenter__())
        try:
            evaluator = evaluator_of(ports, settings)
            try:
                yield Workplace(chip=chip, evaluator=evaluator, ports=ports, loop=loop)
            finally:
                loop.run(evaluator.close())
        finally:
            loop.run(context.__aexit__(None, None, None))
