"""Verdicts remembered: a kernel judged once under equal conditions is not judged again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evaluator_svc.settings import HARNESS_VERSION
from shared import ids, json_codec
from shared.events import (
    NOT_THE_KERNELS_FAULT,
    Evaluation,
    EvaluationCompleted,
    EvaluationRequested,
    KernelRef,
    SearchStarted,
)
from shared.store import Documents

COLLECTION = "evaluator.verdicts"


class Memo:
    """Evaluations by kernel, operator, chip, threads, purpose and harness version."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def recall(self, request: EvaluationRequested) -> Evaluation | None:
        """The remembered verdict, marked ``memoised``.

        Raises:
            Poison: the stored document is not a verdict of this version.
        """
        stored = await self._documents.get(COLLECTION, key(request))
        if stored is None:
            return None
        evaluation = json_codec.from_plain(Evaluation, stored["evaluation"], COLLECTION)
        assert isinstance(evaluation, Evaluation)
        return replace(evaluation, memoised=True)

    async def keep(self, request: EvaluationRequested, evaluation: Evaluation) -> None:
        """Remember ``evaluation``, unless it says nothing about the kernel."""
        if evaluation.status not in NOT_THE_KERNELS_FAULT:
            await self._documents.put(COLLECTION, key(request), {"evaluation": json_codec.to_plain(evaluation)})


async def preload(documents: Documents, search: SearchStarted, recorded: Iterable[EvaluationCompleted]) -> None:
    """Remember verdicts recorded elsewhere for ``search``'s operator, chip and threads: what a fork answers from."""
    memo = Memo(documents)
    for fact in recorded:
        request = EvaluationRequested(
            search_id=fact.search_id,
            evaluation_id=fact.evaluation_id,
            candidate_id=fact.candidate_id,
            kernel=KernelRef(kernel_id=fact.kernel_id, language="", source_hash=""),
            operator=search.operator,
            chip=fact.chip,
            purpose=fact.purpose,
            threads=search.threads,
        )
        await memo.keep(request, fact.evaluation)


def key(request: EvaluationRequested) -> str:
    """Everything a verdict depends on."""
    return ids.derive(
        request.kernel.kernel_id,
        request.operator.source_hash,
        request.chip,
        request.threads,
        request.purpose.value,
        HARNESS_VERSION,
    )
