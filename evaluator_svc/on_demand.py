"""Evaluations that other systems ask for: one kernel, this worker, the verdict alone.

They are made by the same evaluator as the pool's and wait at the same gate for the device. Nothing is published.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from evaluator_svc.evaluators import Evaluates
from evaluator_svc.memo import Memo
from evaluator_svc.observer import Happening
from evaluator_svc.pool import Worker
from evaluator_svc.stages import Stopwatch
from evaluator_svc.toolchains.flags import DEFAULT_FLAGS
from shared import chips, ids, operators
from shared.chips import ChipSheet
from shared.errors import OperatorError, Unavailable, UserError
from shared.events import Entry, Evaluation, EvaluationRequested, KernelRef, Purpose, Status
from shared.machine import processor
from shared.store import Store

log = logging.getLogger(__name__)

Tell = Callable[[str], None]

QUEUED, ADMISSION = "queued", "admission"
NAME_CHARS_MAX = 200
_STAGES = {"wait": QUEUED}
"""Spans of the stopwatch that are told under another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A kernel and what it is to be judged against. Empty fields are the worker's own choice."""

    operator_name: str
    operator_source: str
    language: str
    kernel_source: str
    flags: tuple[str, ...] = ()
    """Empty: the default ones and those of this machine's best instruction set."""
    entry: str = "ke_launch"
    chip: str = ""
    threads: int = 0
    purpose: Purpose = Purpose.SEARCH


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

    async def evaluate(self, asked: Asked) -> AsyncGenerator[str | Evaluation, None]:
        """The stages it goes through, as it enters them, and then the verdict. Closing it ends the evaluation.

        Raises:
            UserError: the request, or its operator, is refused.
            Unavailable: the worker is draining, or store or cache are gone.
        """
        if self.worker.draining:
            raise Unavailable("this worker is draining")
        request = await self._request(asked)
        told: asyncio.Queue[str] = asyncio.Queue()
        task = asyncio.create_task(self._judge(request, told.put_nowait))
        try:
            async with aclosing(_until(task, told)) as stages:
                async for stage in stages:
                    yield stage
        finally:
            await self._end(task)
        yield task.result()

    async def _end(self, task: asyncio.Task[Evaluation]) -> None:
        """End ``task``; a worker with one that cannot be ended is stuck, whoever had asked for it."""
        task.cancel()
        await asyncio.wait({task}, timeout=self._grace_s)
        if not task.done():
            log.error("an evaluation on demand did not end within %g s of being told", self._grace_s)
            self.worker.observer.happened(Happening.STUCK)
            self.worker.when_stuck()

    async def _judge(self, request: EvaluationRequested, tell: Tell) -> Evaluation:
        tell(QUEUED)
        async with self._places:
            self.busy += 1
            try:
                remembered = await self._memo.recall(request)
                if remembered is not None:
                    return remembered
                async with asyncio.timeout(self._deadline_s):
                    tell(ADMISSION)
                    await self._evaluator.admit(request.operator, request.threads)
                    evaluation = await self._evaluator.evaluate(
                        request, Stopwatch(lambda stage: tell(_STAGES.get(stage, stage)))
                    )
                return await self._memo.keep(request, evaluation)
            except TimeoutError:
                why = Entry(name="reason", value=f"not done within the deadline of {self._deadline_s:g} s")
                return Evaluation(status=Status.INFRASTRUCTURE, evidence=(why,))
            finally:
                self.busy -= 1

    async def _request(self, asked: Asked) -> EvaluationRequested:
        """The request, whose texts are stored.

        Raises:
            UserError: what is wrong with ``asked``.
        """
        sheet, threads = chips.load(self.worker.chip), asked.threads or 1
        check(asked, sheet, threads)
        spec = operators.parse(asked.operator_source, name=asked.operator_name or "operator")
        await self._store.blobs.put(spec.source.encode())
        source_hash = await self._store.blobs.put(asked.kernel_source.encode())
        flags = asked.flags or (*DEFAULT_FLAGS, *chips.best_isa(sheet, processor().flags).flags)
        kernel_id = ids.derive(asked.language, source_hash, *flags, asked.entry)
        kernel = KernelRef(
            kernel_id=kernel_id, language=asked.language, source_hash=source_hash, flags=flags, entry=asked.entry
        )
        return EvaluationRequested(
            search_id="",
            evaluation_id=ids.derive(kernel_id, spec.ref.source_hash, asked.purpose.value),
            candidate_id=kernel_id,
            kernel=kernel,
            operator=spec.ref,
            chip=sheet.id,
            purpose=asked.purpose,
            threads=threads,
        )


def check(asked: Asked, sheet: ChipSheet, threads: int) -> None:
    """Raises ``UserError`` for what this worker cannot evaluate, before anything is stored or run."""
    if asked.chip not in ("", sheet.id):
        raise UserError(f"is `{asked.chip}`, this worker's is `{sheet.id}`", where="chip", hint="ask its own pool")
    if asked.language not in sheet.languages:
        raise UserError(
            f"is `{asked.language}`", where="language", hint=f"chip `{sheet.id}` takes {', '.join(sheet.languages)}"
        )
    cores = processor().cores
    if not 1 <= threads <= cores:
        raise UserError(f"is {threads}, this worker offers 1 to {cores}", where="threads")
    if not asked.operator_name.isprintable() or len(asked.operator_name) > NAME_CHARS_MAX:
        raise UserError(f"is not one line of at most {NAME_CHARS_MAX} characters", where="operator_name")
    if not asked.kernel_source.strip():
        raise UserError("is empty", where="kernel_source")
    if len(asked.operator_source.encode()) > operators.SOURCE_BYTES_MAX:
        raise OperatorError(f"is larger than {operators.SOURCE_BYTES_MAX >> 20} MiB", where="operator_source")


async def _until(task: asyncio.Task[Evaluation], told: asyncio.Queue[str]) -> AsyncGenerator[str, None]:
    """What is ``told``, each stage once in a row, until ``task`` is done."""
    before = ""
    task.add_done_callback(lambda _: told.put_nowait(""))
    while (stage := await told.get()) or not task.done():
        if stage != before:
            yield stage
        before = stage
