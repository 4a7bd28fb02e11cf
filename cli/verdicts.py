"""Asking an evaluator of this machine for verdicts, one kernel against one operator or several."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cli.submitted import Problem
from evaluator_svc.toolchains.flags import DEFAULT_FLAGS, OPTIMIZED
from shared import chips, ids
from shared.chips import ChipSheet
from shared.errors import UserError
from shared.events import Evaluation, EvaluationRequested, KernelRef, Purpose, Status
from shared.machine import processor
from shared.submissions.kernel import EMULATED, NATIVE, Kernel

ATTEMPTS_MAX = 3
"""Measurements when the machine is noisy; the search uses the same number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``kernel`` is to be judged against ``problem``, built with ``flags``."""

    problem: Problem
    kernel: Kernel
    flags: tuple[str, ...]

    @property
    def source_hash(self) -> str:
        return ids.content_hash(self.kernel.source.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """``ledger`` is the whole record of the evaluation, None where it keeps none."""

    asked: Asked
    evaluation: Evaluation
    ledger: dict[str, Any] | None


def flags_of(kernel: Kernel, given: tuple[str, ...], sheet: ChipSheet) -> tuple[str, ...]:
    """The compiler flags of ``kernel``: those ``given``, or the default ones and this machine's instruction set.

    Raises:
        UserError: flags for what is not compiled by them.
    """
    if kernel.language == NATIVE:
        return given or (*DEFAULT_FLAGS, *chips.best_isa(sheet, processor().flags).flags)
    if kernel.language == EMULATED and sheet.vector is not None:
        return given or (*OPTIMIZED, *sheet.vector.flags)
    if sheet.external is not None:
        return given
    if given:
        raise UserError(f"is for language `{NATIVE}`, this kernel is `{kernel.language}`", where="--flag")
    return ()


async def verdicts(
    asked: Sequence[Asked], chip: str, threads: int, purpose: Purpose, tell: Callable[[str], None]
) -> AsyncGenerator[Answered, None]:
    """Each in turn, admitted first; a noisy moment is tried again. ``tell`` is told which one it is at."""
    from deploy.embedded import evaluator_alone  # only once the input is known to be good

    async with evaluator_alone(chip, os.environ) as (ports, evaluator):
        for one in asked:
            tell(one.problem.spec.ref.name)
            await ports.store.blobs.put(one.kernel.source.encode())
            await ports.store.blobs.put(one.problem.spec.source.encode())
            await evaluator.admit(one.problem.spec.ref, threads)
            for attempt in range(1, ATTEMPTS_MAX + 1):
                evaluation = await evaluator.evaluate(_request(one, chip, threads, purpose, attempt))
                if evaluation.status is not Status.NOISY:
                    break
            blob = await ports.store.blobs.get(evaluation.ledger_hash) if evaluation.ledger_hash else None
            yield Answered(asked=one, evaluation=evaluation, ledger=None if blob is None else json.loads(blob))


def _request(one: Asked, chip: str, threads: int, purpose: Purpose, attempt: int) -> EvaluationRequested:
    kernel = one.kernel
    kernel_id = ids.derive(kernel.language, one.source_hash, *one.flags, kernel.entry)
    return EvaluationRequested(
        search_id="",
        evaluation_id=ids.derive(kernel_id, one.problem.spec.ref.source_hash, attempt),
        candidate_id=kernel_id,
        kernel=KernelRef(
            kernel_id=kernel_id,
            language=kernel.language,
            source_hash=one.source_hash,
            flags=one.flags,
            entry=kernel.entry,
        ),
        operator=one.problem.spec.ref,
        chip=chip,
        purpose=purpose,
        threads=threads,
        attempt=attempt,
    )
