"""Evaluations that other systems ask for: one kernel, this worker, the verdict alone.

They are made by the same evaluator as the pool's and wait at the same gate for the device. Nothing is published.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from evaluator_svc import ledger
from evaluator_svc.evaluators import Evaluates
from evaluator_svc.memo import Memo
from evaluator_svc.observer import Happening
from evaluator_svc.pool import Worker
from evaluator_svc.quarantine import Standing
from evaluator_svc.requested import Asked, Requested, understand
from evaluator_svc.telling import ADMISSION, QUEUED, Ended, Told
from shared import chips, ids
from shared.chips import ChipSheet
from shared.errors import NotFound, Unavailable, UserError
from shared.events import Entry, Evaluation, EvaluationRequested, KernelRef, Status
from shared.machine import processor
from shared.store import Store

log = logging.getLogger(__name__)

HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What is evaluated. Hashes are SHA-256 of the texts that operator and kernel were made into."""

    operator_name: str
    operator_hash: str
    kernel_hash: str
    language: str
    form: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The ledger of the evaluation, as JSON."""

    ledger: bytes


Update = Understood | str | Ended | Kept | Evaluation
"""In this order: what was understood, stages as they begin and end, the ledger where it was asked for, the verdict."""


class OnDemand:
    """As many evaluations at a time as the worker has slots, beside those of the pool."""

    def __init__(self, store: Store, evaluator: Evaluates, worker: Worker) -> None:
        self._store, self._evaluator, self.worker = store, evaluator, worker
        self._memo = Memo(store.documents)
        self._places = asyncio.Semaphore(worker.slots)
        self._deadline_s = evaluator.settings.pool.deadline_s
        self._grace_s = evaluator.settings.pool.grace_s
        self.busy = 0

    def environment(self) -> tuple[Entry, ...]:
        """What results are obtained with."""
        return self._evaluator.environment()

    async def evaluate(self, asked: Asked) -> AsyncGenerator[Update, None]:
        """What it goes through, as ``Update`` orders it, and then the verdict. Closing it ends the evaluation.

        Raises:
            UserError: the request, or its operator, is refused.
            Unavailable: the worker is draining, or store or cache are gone.
        """
        if self.worker.draining:
            raise Unavailable("this worker is draining")
        quarantine = self.worker.quarantine
        if quarantine.standing in (Standing.QUARANTINED, Standing.OUT):
            raise Unavailable(f"this worker is not fit to judge: {quarantine.reason}")
        sheet = chips.load(self.worker.chip)
        check(asked, sheet)
        requested = understand(asked, sheet, _isa_flags(sheet))
        request = await self._request(asked, requested)
        yield Understood(
            operator_name=requested.operator.ref.name,
            operator_hash=request.operator.source_hash,
            kernel_hash=request.kernel.source_hash,
            language=request.kernel.language,
            form=requested.kernel.form,
        )
        told: asyncio.Queue[str | Ended] = asyncio.Queue()
        task = asyncio.create_task(self._judge(request, Told(told.put_nowait)))
        try:
            async with aclosing(_until(task, told)) as updates:
                async for update in updates:
                    yield update
        finally:
            await self._end(task)
        evaluation = task.result()
        if asked.with_ledger and evaluation.ledger_hash:
            yield Kept(ledger=await self.ledger(evaluation.ledger_hash))
        yield evaluation

    async def ledger(self, digest: str) -> bytes:
        """The ledger of that hash. Nothing else of the store is given out: a hash is no secret.

        Raises:
            UserError: no hash.
            NotFound: there is no ledger of that hash.
        """
        if not HASH.fullmatch(digest):
            raise UserError("is no SHA-256 in lower-case hex", where="ledger_hash")
        try:
            data = await self._store.blobs.get(digest)
            known: bool = json.loads(data)["format"] == ledger.FORMAT
        except (KeyError, ValueError, TypeError, RecursionError):
            known = False
        if not known:
            raise NotFound(f"there is no ledger {digest}", where="ledger_hash")
        return data

    async def _end(self, task: asyncio.Task[Evaluation]) -> None:
        """End ``task``; a worker with one that cannot be ended is stuck, whoever had asked for it."""
        task.cancel()
        await asyncio.wait({task}, timeout=self._grace_s)
        if not task.done():
            log.error("an evaluation on demand did not end within %g s of being told", self._grace_s)
            self.worker.observer.happened(Happening.STUCK)
            self.worker.when_stuck()

    async def _judge(self, request: EvaluationRequested, told: Told) -> Evaluation:
        told.enter(QUEUED)
        async with self._places:
            self.busy += 1
            try:
                remembered = await self._memo.recall(request)
                if remembered is not None:
                    return remembered
                watch = told.stopwatch()
                async with asyncio.timeout(self._deadline_s):
                    with watch.span(ADMISSION):
                        await self._evaluator.admit(request.operator, request.threads)
                    evaluation = await self._evaluator.evaluate(request, told.stopwatch())
                told.finish(evaluation)
                return await self._memo.keep(request, evaluation)
            except TimeoutError:
                why = Entry(name="reason", value=f"not done within the deadline of {self._deadline_s:g} s")
                evaluation = Evaluation(status=Status.INFRASTRUCTURE, evidence=(why,))
                told.finish(evaluation)
                return evaluation
            finally:
                self.busy -= 1

    async def _request(self, asked: Asked, requested: Requested) -> EvaluationRequested:
        """The request, whose texts are stored."""
        spec, kernel = requested.operator, requested.kernel
        await self._store.blobs.put(spec.source.encode())
        source_hash = await self._store.blobs.put(kernel.source.encode())
        kernel_id = ids.derive(kernel.language, source_hash, *requested.flags, requested.entry)
        return EvaluationRequested(
            search_id="",
            evaluation_id=ids.derive(kernel_id, spec.ref.source_hash, asked.purpose.value),
            candidate_id=kernel_id,
            kernel=KernelRef(
                kernel_id=kernel_id,
                language=kernel.language,
                source_hash=source_hash,
                flags=requested.flags,
                entry=requested.entry,
            ),
            operator=spec.ref,
            chip=self.worker.chip,
            purpose=asked.purpose,
            threads=asked.threads or 1,
        )


def check(asked: Asked, sheet: ChipSheet) -> None:
    """Raises ``UserError`` for what this worker does not offer."""
    if asked.chip not in ("", sheet.id):
        raise UserError(f"is `{asked.chip}`, this worker's is `{sheet.id}`", where="chip", hint="ask its own pool")
    cores = processor().cores
    if not 1 <= (asked.threads or 1) <= cores:
        raise UserError(f"is {asked.threads}, this worker offers 1 to {cores}", where="threads")


def _isa_flags(sheet: ChipSheet) -> tuple[str, ...]:
    """Of this machine's best instruction set; a chip without any in its sheet has none."""
    if sheet.vector is not None:
        return sheet.vector.flags
    return chips.best_isa(sheet, processor().flags).flags if sheet.isas else ()


async def _until(task: asyncio.Task[Evaluation], told: asyncio.Queue[str | Ended]) -> AsyncGenerator[str | Ended, None]:
    """What is ``told`` until ``task`` is done."""
    task.add_done_callback(lambda _: told.put_nowait(""))
    while (update := await told.get()) or not task.done():
        if update:
            yield update
