"""Verdicts remembered: a kernel judged once under equal conditions is not judged again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from evaluator_svc.settings import HARNESS_VERSION
from shared import ids, json_codec
from shared.errors import Poison
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

log = logging.getLogger(__name__)


class Memo:
    """Evaluations by kernel, operator, chip, threads, purpose and harness version."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def recall(self, request: EvaluationRequested) -> Evaluation | None:
        """The remembered verdict, marked ``memoised``. Raises ``Unavailable`` while the store is gone."""
        stored = await self._documents.get(COLLECTION, key(request))
        return None if stored is None else _read(stored)

    async def keep(self, request: EvaluationRequested, evaluation: Evaluation) -> Evaluation:
        """Remember ``evaluation``, unless it says nothing about the kernel. Returns the verdict that stands.

        Of several workers that judged one kernel the first one's verdict stands, and all of them give it. Raises
        ``Unavailable`` while the store is gone.
        """
        if evaluation.status in NOT_THE_KERNELS_FAULT:
            return evaluation
        document = {"evaluation": json_codec.to_plain(evaluation)}
        earlier = await self._documents.create(COLLECTION, key(request), document)
        if earlier is None:
            return evaluation
        standing = _read(earlier)
        if standing is None:
            await self._documents.put(COLLECTION, key(request), document)
            return evaluation
        # Equal: it is this one, put by a try that had seemed to fail.
        return evaluation if replace(standing, memoised=False) == evaluation else standing


def _read(document: Mapping[str, object]) -> Evaluation | None:
    """None for a document that is no verdict of this version: then the kernel is judged again."""
    try:
        evaluation = json_codec.from_plain(Evaluation, document.get("evaluation"), COLLECTION)
    except Poison as error:
        log.warning("a remembered verdict cannot be read: %s", error)
        return None
    assert isinstance(evaluation, Evaluation)
    return replace(evaluation, memoised=True)


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
