"""One expansion being written: its indices shared out, and each answer told as soon as nothing can change it.

Schedules take milliseconds and a model takes minutes, so schedules are written and told first. They cannot step around
kernels that a model has not written yet; it is the model that is kept from theirs: they are not on offer, and answers
that equal them are duplicates. What no longer depends on any other answer is told at once: kernels, and answers that a
model gave though they are none. The rest waits for the last answer, because it may be filled in for, or be one pause
of all of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from shared.clock import Clock
from shared.events import CandidateProduced, CandidateRejected, Entry, Usage
from shared.usage import total
from shared.writers import INSTEAD_OF, SCHEDULE
from synthesizer_svc.answers import Unwritten, Written
from synthesizer_svc.asking import share
from synthesizer_svc.asking.writer import EXHAUSTED, ModelWriter
from synthesizer_svc.gather import Seen
from synthesizer_svc.schedule.synthesize import Prepared, ScheduleWriter

Answer = Written | Unwritten
Told = Callable[[Mapping[int, Answer]], Awaitable[None]]
REASON_CHARS_MAX = 300


class Writing:
    """Gives each index of ``arms`` its answer and hands it to ``tell``, some at a time.

    ``before`` are facts that an earlier delivery of the same request told: they stand, and the rest is written as if
    they had just been, so that a model is asked what it was asked then.
    """

    def __init__(
        self,
        seen: Seen,
        language: str,
        prepared: Prepared | None,
        *,
        arms: Sequence[str],
        writers: Sequence[str],
        schedules: ScheduleWriter | None,
        model: ModelWriter | None,
        clock: Clock,
        gathered_ns: int,
        before: Sequence[CandidateProduced | CandidateRejected],
        tell: Told,
    ) -> None:
        self._seen, self._language, self._prepared = seen, language, prepared
        self._arms, self._writers = arms, writers
        self._schedules, self._model = schedules, model
        self._clock, self._gathered_ns, self._tell = clock, gathered_ns, tell
        self._kernels = {one.index: one.kernel.kernel_id for one in before if isinstance(one, CandidateProduced)}
        self._told = {one.index for one in before}
        self._waiting: dict[int, Answer] = {}

    async def run(self) -> None:
        """Write and tell what was not told before. What cannot be written until somebody acts is left in ``stopped``,
        and then nothing was told at all.
        """
        by_schedule = [index for index, arm in enumerate(self._arms) if arm == SCHEDULE and index not in self._told]
        if by_schedule:
            await self._give(await self._by_schedule(by_schedule))
        by_model = {i: arm for i, arm in enumerate(self._arms) if arm != SCHEDULE and i not in self._told}
        if self._model and by_model:
            await self._ask(self._model, by_model)
        if SCHEDULE in self._writers and (vacant := [i for i, answer in self._waiting.items() if _fills_in(answer)]):
            filled = await self._by_schedule(sorted(vacant))
            self._waiting |= {index: _instead(self._waiting[index], answer) for index, answer in filled.items()}
        if self._waiting and self.stopped is None:
            await self._give(self._waiting)

    @property
    def stopped(self) -> Unwritten | None:
        """Why nothing at all could be written until somebody acts; None when something was, or a model answered what is
        no kernel: that is told for itself, with its conversation, and the next expansion pauses.
        """
        pausing = (one for one in self._waiting.values() if isinstance(one, Unwritten) and one.pauses)
        return None if self._told else next(pausing, None)

    @property
    def usage(self) -> Usage:
        """Of what was not told."""
        return total(*(answer.usage for _, answer in sorted(self._waiting.items())))

    async def _ask(self, model: ModelWriter, arms: Mapping[int, str]) -> None:
        """Ask for ``arms``; for kernels in place of moves that there are none of, where models write alone and may."""
        await self._asked(model, arms)
        if SCHEDULE in self._writers or share.REWRITE not in self._writers:
            return
        left = [i for i, one in sorted(self._waiting.items()) if isinstance(one, Unwritten) and one.code == EXHAUSTED]
        if left:
            await self._asked(model, dict.fromkeys(left, share.REWRITE))

    async def _asked(self, model: ModelWriter, arms: Mapping[int, str]) -> None:
        def kernels(arm: str) -> dict[int, str]:
            return {index: kernel for index, kernel in self._kernels.items() if self._arms[index] == arm}

        await model.write(
            self._seen,
            self._language,
            arms,
            self._prepared,
            avoid=frozenset(kernels(SCHEDULE).values()),
            chosen=kernels(share.MOVES),
            taken=frozenset(self._kernels.values()),
            each=self._heard,
        )

    async def _heard(self, index: int, answer: Answer) -> None:
        self._waiting[index] = answer
        if isinstance(answer, Written) or _answered(answer):
            await self._give({index: answer})

    async def _by_schedule(self, indices: Sequence[int]) -> dict[int, Answer]:
        """What schedules cost is this project's own time, gathering included and capturing once per operator excluded;
        it is shared out over their answers. A model's answer carries the time of its calls.
        """
        assert self._prepared is not None
        assert self._schedules is not None
        began = self._clock.monotonic_ns()
        taken = frozenset(self._kernels.values())
        written = await self._schedules.write(self._seen, self._prepared, len(indices), taken)
        took_ns, self._gathered_ns = self._gathered_ns + self._clock.monotonic_ns() - began, 0
        usage = Usage(latency_ns=took_ns // len(indices))
        return {index: replace(answer, usage=usage) for index, answer in zip(indices, written, strict=True)}

    async def _give(self, answers: Mapping[int, Answer]) -> None:
        given = dict(sorted(answers.items()))
        self._kernels |= {i: answer.kernel.kernel_id for i, answer in given.items() if isinstance(answer, Written)}
        self._told |= given.keys()
        self._waiting = {index: answer for index, answer in self._waiting.items() if index not in given}
        await self._tell(given)


def _fills_in(answer: Answer) -> bool:
    """Whether the schedule writer takes an index over: a model could not be asked, or had nothing to choose from."""
    return isinstance(answer, Unwritten) and (answer.pauses or answer.code == EXHAUSTED)


def _answered(answer: Unwritten) -> bool:
    return not answer.pauses and answer.context is not None and bool(answer.context.endpoint)


def _instead(asked: Answer, written: Answer) -> Answer:
    """``written`` by a schedule at an index that a model was asked for in vain, with what that was and cost."""
    if asked.context is None:
        return written
    usage = total(asked.usage, written.usage)
    if isinstance(written, Unwritten):
        return replace(written, usage=usage, context=asked.context)
    assert isinstance(asked, Unwritten)
    reason = Entry(name=INSTEAD_OF, value=f"{asked.code}: {asked.detail}"[:REASON_CHARS_MAX])
    return replace(
        written,
        move=replace(written.move, parameters=(*written.move.parameters, reason)),
        context=replace(asked.context, skill_ids=written.context.skill_ids),
        usage=usage,
    )
