"""One slot of a worker: claim, evaluate, fence, remember, publish, finish.

The claim is renewed all the while. Once it is not held any more, by a worker that was stopped for longer than its time
to live or after the cache lost its data, whatever the slot has is dropped: somebody else does the work. A verdict is
remembered before it is published, and the published event's id derives from the request's, so doing any of it twice
gives the same event.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from evaluator_svc.evaluators import Evaluates
from evaluator_svc.memo import Memo
from evaluator_svc.observer import Happening, Observer
from evaluator_svc.pausing import pause
from evaluator_svc.quarantine import Quarantine
from evaluator_svc.settings import PoolLimits
from evaluator_svc.stages import Stopwatch
from shared import endings, envelopes, logs, tracing, wire
from shared.bus import Record
from shared.cache import Claim
from shared.clock import SECOND_NS
from shared.errors import Fatal, Poison, Retryable, Unavailable
from shared.events import Entry, Envelope, Evaluation, EvaluationCompleted, EvaluationRequested, Status
from shared.patience import patiently
from shared.ports import Ports

PAUSE_S = 0.5
"""Longest pause after a claim that found no cache."""

log = logging.getLogger(__name__)


class Stuck(Fatal):
    """An evaluation that was told to end and did not: only the end of the process ends it."""


class Slot:
    """See the module."""

    def __init__(
        self,
        *,
        ports: Ports,
        evaluator: Evaluates,
        chip: str,
        worker: str,
        limits: PoolLimits,
        observer: Observer,
        quarantine: Quarantine,
    ) -> None:
        self._bus, self._queues, self._clock = ports.bus, ports.cache.queues, ports.clock
        self._cache = ports.cache.cache
        self._evaluator, self._memo = evaluator, Memo(ports.store.documents)
        self._chip, self._worker, self._limits, self._observer = chip, worker, limits, observer
        self._quarantine = quarantine
        self.busy = False
        """Judging; what is being published does not count."""

    async def run(self, stop: asyncio.Event) -> None:
        """Take work until ``stop`` is set and what is in hand is finished, or given back after ``drain_s``.

        The next work is claimed as soon as a verdict is there: remembering and publishing it takes the store and the
        bus, not the slot.

        Raises:
            Stuck: an evaluation could not be ended.
            Exception: a bug in evaluating, unchanged, in an exception group.
        """
        before: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as group:
            while await self._may_work(stop):
                claim = await self._claim(stop)
                if claim is None:
                    continue
                if stop.is_set() or not self._quarantine.working:
                    await self._give_back(claim)
                    continue
                judged = asyncio.Event()
                working = group.create_task(self._work(claim, stop, judged))
                await judged.wait()
                if before is not None:
                    await asyncio.wait({before})
                before = working

    async def _may_work(self, stop: asyncio.Event) -> bool:
        """Waits while the worker is not trusted, its own first test included; False once ``stop`` is set."""
        if not self._quarantine.working and not stop.is_set():
            waits = {asyncio.create_task(stop.wait()), asyncio.create_task(self._quarantine.admitted.wait())}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()
        return not stop.is_set()

    async def _claim(self, stop: asyncio.Event) -> Claim | None:
        """Never cancelled: a claim whose answer nobody hears would be lost work until it expires."""
        limits = self._limits
        try:
            return await self._queues.claim(self._chip, self._worker, limits.claim_ttl_s, limits.claim_wait_s)
        except Unavailable as error:
            log.warning("no work from the queue of %s: %s", self._chip, error)
            await pause(stop, PAUSE_S)
            return None

    async def _work(self, claim: Claim, stop: asyncio.Event, judged: asyncio.Event) -> None:
        """Answer the claimed request, unless the claim is lost or the drain runs out first.

        ``judged`` is set as soon as the slot is free for the next.
        """
        answering = asyncio.create_task(self._answer(claim, judged))
        renewing = asyncio.create_task(self._renew_until_lost(claim))
        draining = asyncio.create_task(self._drained(stop))
        try:
            await asyncio.wait({answering, renewing, draining}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            answering.cancel()  # does nothing to one that is done
            await asyncio.wait({answering})
            judged.set()
            for task in (renewing, draining):
                task.cancel()
        if answering.cancelled() and renewing.done():
            renewing.result()  # raises what kept it from asking
            self._drop(claim)
        elif answering.cancelled():
            await self._give_back(claim)
        elif answering.result() is None:
            self._observer.happened(Happening.WITHDRAWN)
            await self._give_back(claim)
        else:
            await self._finish(claim, answering.result() or 0)

    async def _answer(self, claim: Claim, judged: asyncio.Event) -> int | None:
        """Judge and publish. Returns for how many ns it kept the slot busy; None when the worker was found unsound
        meanwhile, so that its verdict counts for nothing.
        """
        begin_ns = self._clock.monotonic_ns()
        envelope = self._read(claim)
        if envelope is None:
            return 0
        request = envelope.event
        assert isinstance(request, EvaluationRequested)
        self._observer.claimed(max(0, self._clock.now_ns() - envelope.time_ns))
        name = type(request).__name__
        about = logs.about(event=name, event_id=envelope.id, **envelopes.names(request))
        with about, tracing.handling(envelope, name):
            self.busy = True
            try:
                evaluation = await self._judged(claim, request)
            finally:
                self.busy = False
            busy_ns = self._clock.monotonic_ns() - begin_ns
            judged.set()
            if not self._quarantine.working:
                return None
            if not await self._renew(claim):
                self._drop(claim)
                return busy_ns
            evaluation = await patiently(partial(self._memo.keep, request, evaluation), "remember a verdict")
            evaluation = await self._tell(envelope, request, evaluation, claim)
            log.info("%s%s", evaluation.status.value, ", remembered" if evaluation.memoised else "")
        self._observer.answered(evaluation, busy_ns)
        return busy_ns

    def _read(self, claim: Claim) -> Envelope | None:
        """None for what no intake of this version put in: it is dropped, and the search will ask again."""
        try:
            envelope = wire.unpack(claim.work.body)
        except Poison as error:
            log.warning("work %s cannot be read and is dropped: %s", claim.work.id, error)
            return None
        if isinstance(envelope.event, EvaluationRequested):
            return envelope
        log.warning("work %s is a %s and is dropped", claim.work.id, type(envelope.event).__name__)
        return None

    async def _judged(self, claim: Claim, request: EvaluationRequested) -> Evaluation:
        remembered = await patiently(partial(self._memo.recall, request), "recall a verdict")
        if remembered is not None:
            return remembered
        if await endings.is_noted(self._cache, request.search_id):
            return Evaluation(status=Status.CANCELLED, evidence=(Entry(name="reason", value="the search has ended"),))
        if claim.deliveries > 1:
            self._observer.happened(Happening.REDELIVERED)
        if claim.deliveries > self._limits.deliveries_max:
            self._observer.happened(Happening.GIVEN_UP)
            return _infrastructure(
                reason="every worker that tried it was lost: it may take its worker along",
                deliveries=claim.deliveries - 1,
                lost_by=", ".join(claim.lost_by),
            )
        made = await patiently(partial(self._evaluate, request), f"evaluate {request.evaluation_id}")
        self._quarantine.answered(request, made, self._clock.monotonic_ns() / SECOND_NS)
        return made

    async def _evaluate(self, request: EvaluationRequested) -> Evaluation:
        """One try, ended at the deadline.

        Raises:
            Unavailable: the store or the cache is gone.
            Stuck: it could not be ended.
        """
        watch = Stopwatch()
        task = asyncio.create_task(self._evaluator.evaluate(request, watch))
        try:
            await asyncio.wait({task}, timeout=self._limits.deadline_s)
            if task.done():
                return task.result()
        finally:
            stage = watch.current
            await self._end(task, request)
        self._observer.happened(Happening.OVERDUE)
        return _infrastructure(
            reason="not finished within the deadline", deadline_s=self._limits.deadline_s, stage=stage
        )

    async def _end(self, task: asyncio.Task[Evaluation], request: EvaluationRequested) -> None:
        if task.done():
            return
        task.cancel()
        await asyncio.wait({task}, timeout=self._limits.grace_s)
        if not task.done():
            self._observer.happened(Happening.STUCK)
            raise Stuck(
                f"evaluation {request.evaluation_id} did not end within {self._limits.grace_s:g} s of being told"
            )
        if not task.cancelled() and task.exception() is not None:
            log.warning("evaluation %s ended with %r", request.evaluation_id, task.exception())

    async def _renew_until_lost(self, claim: Claim) -> None:
        """Returns once the claim is not held any more. A cache that is gone is asked until it knows."""
        while True:
            await asyncio.sleep(self._limits.claim_ttl_s / 3)
            if not await self._renew(claim):
                return

    async def _renew(self, claim: Claim) -> bool:
        renewing = partial(self._queues.renew, self._chip, claim, self._limits.claim_ttl_s)
        return await patiently(renewing, f"renew the claim on {claim.work.id}")

    async def _drained(self, stop: asyncio.Event) -> None:
        await stop.wait()
        await asyncio.sleep(self._limits.drain_s)

    def _fact(self, envelope: Envelope, request: EvaluationRequested, evaluation: Evaluation, claim: Claim) -> Envelope:
        fact = EvaluationCompleted(
            search_id=request.search_id,
            evaluation_id=request.evaluation_id,
            candidate_id=request.candidate_id,
            kernel_id=request.kernel.kernel_id,
            chip=request.chip,
            purpose=request.purpose,
            evaluation=evaluation,
            attempt=request.attempt,
            at_ns=self._clock.now_ns(),
        )
        return envelopes.envelope(
            fact,
            cause_id=envelope.id,
            source=f"/evaluator/{self._chip}/{self._worker}",
            clock=self._clock,
            attempt=request.attempt,
            lease=str(claim.token),
            traceparent=tracing.onward(envelope),
        )

    async def _tell(
        self, envelope: Envelope, request: EvaluationRequested, evaluation: Evaluation, claim: Claim
    ) -> Evaluation:
        """Publish the verdict, or that there is one which the bus refuses. Returns what was published."""
        try:
            await self._publish(self._fact(envelope, request, evaluation, claim))
        except Poison as error:
            log.warning("the verdict cannot be published: %s", error)
            evaluation = _infrastructure(reason=f"its verdict cannot be published: {error}")
            await self._publish(self._fact(envelope, request, evaluation, claim))
        return evaluation

    async def _publish(self, answer: Envelope) -> None:
        topic, record = envelopes.topic_of(answer.event), wire.encode(answer)
        await patiently(partial(self._publish_once, topic, record), f"publish to {topic}")

    async def _publish_once(self, topic: str, record: Record) -> None:
        try:
            await self._bus.publish(topic, record)
        except Unavailable:
            raise
        except Retryable as error:  # a full topic: there is nothing better to do with a verdict than to wait
            raise Unavailable(str(error)) from error

    async def _finish(self, claim: Claim, cost_ns: int) -> None:
        """A cache that is gone is waited for while the claim lives; after that somebody else answers from memory."""
        try:
            async with asyncio.timeout(self._limits.claim_ttl_s):
                finishing = partial(self._queues.finish, self._chip, claim, cost_ns)
                await patiently(finishing, f"finish {claim.work.id}")
        except TimeoutError:
            log.warning("the claim on %s expires by itself", claim.work.id)

    def _drop(self, claim: Claim) -> None:
        log.warning("the claim on %s is lost, and what was made of it dropped", claim.work.id)
        self._observer.happened(Happening.FENCED)

    async def _give_back(self, claim: Claim) -> None:
        self._observer.happened(Happening.GIVEN_BACK)
        try:
            await self._queues.give_back(self._chip, claim)
        except Unavailable as error:
            log.warning("the claim on %s expires by itself: %s", claim.work.id, error)


def _infrastructure(**evidence: object) -> Evaluation:
    entries = tuple(Entry(name=name, value=str(value)) for name, value in evidence.items())
    return Evaluation(status=Status.INFRASTRUCTURE, evidence=entries)
