"""One expansion, answered: which writer writes which index, and the facts that result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shared import chips
from shared.clock import Clock
from shared.errors import ChipError, Poison
from shared.events import CandidateProduced, CandidateRejected, Entry, ExpansionFailed, ExpansionRequested, Usage
from shared.knowledge import Knowledge
from shared.machine import Processor
from shared.store import Blobs, Documents
from shared.trial_build import TrialBuild
from shared.usage import total
from shared.writers import INSTEAD_OF, SCHEDULE
from synthesizer_svc import answers
from synthesizer_svc.answers import Unwritten, Written
from synthesizer_svc.asking import share
from synthesizer_svc.asking.settings import HYBRID
from synthesizer_svc.asking.writer import EXHAUSTED, ModelWriter
from synthesizer_svc.counting import Tokenizer
from synthesizer_svc.gather import Gatherer, Seen, load_operator
from synthesizer_svc.model import Model
from synthesizer_svc.prompts import has_contract
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.lowering import Lowering
from synthesizer_svc.schedule.synthesize import Prepared, ScheduleWriter
from synthesizer_svc.settings import Settings

Fact = CandidateProduced | CandidateRejected | ExpansionFailed
REASON_CHARS_MAX = 300


class Expander:
    """Turns a request into its facts: ``count`` of them, or one ExpansionFailed."""

    def __init__(
        self,
        *,
        blobs: Blobs,
        knowledge: Knowledge,
        lowerings: Mapping[str, Lowering],
        model: Model | None,
        processor: Processor,
        clock: Clock,
        settings: Settings,
        trials: TrialBuild | None = None,
        tokenizer: Tokenizer | None = None,
        documents: Documents | None = None,
    ) -> None:
        """``lowerings`` maps a language to what plans operators for it; ``trials`` builds what a model wrote;
        ``tokenizer`` counts what it is asked; ``documents`` keep what must be the same when it is asked again.
        """
        limits = settings.limits
        self._blobs, self._clock, self._processor = blobs, clock, processor
        self._asking, self._share_percent = settings.asking, settings.model.share_percent
        self._gatherer = Gatherer(blobs, knowledge, limits.documents_max, remembering=documents if model else None)
        self._schedules = {
            language: ScheduleWriter(
                blobs, lowering, renders_max=limits.renders_max, operators_max=limits.operators_max
            )
            for language, lowering in lowerings.items()
        }
        self._model = (
            ModelWriter(
                model,
                blobs,
                clock,
                limits=settings.model,
                asking=settings.asking,
                trials=trials,
                contexts=tuple(endpoint.capabilities.context_tokens for endpoint in settings.endpoints),
                tokenizer=tokenizer,
            )
            if model
            else None
        )

    async def expand(self, expansion: ExpansionRequested) -> tuple[Fact, ...]:
        """The facts that answer ``expansion``.

        Raises:
            Poison: it refers to blobs that do not exist, or asks for nothing.
        """
        if expansion.count < 1 or not expansion.languages:
            raise Poison(f"expansion {expansion.expansion_id} asks for no candidate or no language")
        operator = await load_operator(self._blobs, expansion.operator)
        try:
            chip = chips.load(expansion.chip)
            machine = chips.machine_of(chip, self._processor.flags)
        except ChipError as error:
            return (self._failed(expansion, "unsupported_chip", str(error)),)
        language = next((name for name in expansion.languages if name in self._schedules), expansion.languages[0])
        prepared: Prepared | None = None
        code, refusal = "unsupported_language", f"no schedule emitter for {', '.join(expansion.languages)}"
        if language in self._schedules:
            try:
                writer = self._schedules[language]
                prepared = await writer.prepare(operator, language, machine, expansion.threads)
            except Unsupported as error:
                code, refusal = "unsupported_operator", f"{error.node}: {error.why}"
        if prepared is None and (self._model is None or not has_contract(language)):
            return (self._failed(expansion, code, refusal),)
        operator_class = prepared.lowered.operator_class if prepared else ""
        began = self._clock.monotonic_ns()
        seen = await self._gatherer.gather(expansion, operator, chip, machine, language, operator_class)
        gathered_ns = self._clock.monotonic_ns() - began
        written = await self._write(seen, language, prepared, gathered_ns)
        stopped = _stopped(written)
        if stopped is not None:
            usage = total(*(answer.usage for answer in written))
            failed = self._failed(expansion, stopped.code, stopped.detail)
            return (replace(failed, pauses=True, usage=usage),)
        at_ns = self._clock.now_ns()
        return tuple(answers.event(expansion, index, answer, at_ns) for index, answer in enumerate(written))

    async def _write(
        self, seen: Seen, language: str, prepared: Prepared | None, gathered_ns: int
    ) -> list[Written | Unwritten]:
        """One answer per index. The model goes first: schedules can step around its kernels, not it around theirs.

        What schedules cost is this project's own time, gathering included and capturing once per operator excluded;
        it is shared out over their answers. A model's answer carries the time of its calls.
        """
        writers = self._writers(prepared, seen)
        arms = self._arms(seen.expansion, writers)
        found: dict[int, Written | Unwritten] = {}
        by_model = {index: arm for index, arm in enumerate(arms) if arm != SCHEDULE}
        if self._model and by_model:
            found.update(await self._model.write(seen, language, by_model, prepared))
            found.update(await self._rewritten(seen, language, prepared, writers, found))
        vacant = [index for index in range(len(arms)) if index not in found]
        if SCHEDULE in writers:
            vacant += [index for index, answer in found.items() if _fills_in(answer)]
        if vacant:
            assert prepared is not None
            taken = frozenset(a.kernel.kernel_id for a in found.values() if isinstance(a, Written))
            began = self._clock.monotonic_ns()
            written = await self._schedules[language].write(seen, prepared, len(vacant), taken)
            usage = Usage(latency_ns=(gathered_ns + self._clock.monotonic_ns() - began) // len(vacant))
            for index, answer in zip(sorted(vacant), written, strict=True):
                found[index] = _instead(found.get(index), replace(answer, usage=usage))
        return [found[index] for index in range(len(arms))]

    async def _rewritten(
        self,
        seen: Seen,
        language: str,
        prepared: Prepared | None,
        writers: tuple[str, ...],
        found: Mapping[int, Written | Unwritten],
    ) -> dict[int, Written | Unwritten]:
        """Kernels in place of moves that there are none of, where models write alone and may rewrite."""
        if self._model is None or SCHEDULE in writers or share.REWRITE not in writers:
            return {}
        left = [index for index, answer in found.items() if isinstance(answer, Unwritten) and answer.code == EXHAUSTED]
        return await self._model.write(seen, language, dict.fromkeys(left, share.REWRITE), prepared)

    def _writers(self, prepared: Prepared | None, seen: Seen) -> tuple[str, ...]:
        """Who may write: the schedule writer unless models have it all, and the ways of asking that are possible.
        Schedules of other chips are for the schedule writer.
        """
        if self._model is None:
            return (SCHEDULE,)
        asking = self._asking.asking
        movable = prepared is not None and _has_schedule(seen)
        moves = (share.MOVES,) if movable and asking in (share.MOVES, HYBRID) else ()
        rewriting = (share.REWRITE,) if asking != share.MOVES or not movable else ()
        schedule = (SCHEDULE,) if prepared is not None and self._share_percent < 100 else ()
        if schedule and seen.priors:
            return schedule
        return (*schedule, *moves, *rewriting)

    def _arms(self, expansion: ExpansionRequested, writers: tuple[str, ...]) -> tuple[str, ...]:
        return share.assign(
            expansion,
            writers,
            share_percent=self._share_percent,
            machine_hour_micro=self._asking.machine_hour_micro,
        )

    def _failed(self, expansion: ExpansionRequested, code: str, detail: str) -> ExpansionFailed:
        return ExpansionFailed(
            search_id=expansion.search_id,
            expansion_id=expansion.expansion_id,
            code=code,
            detail=detail,
            at_ns=self._clock.now_ns(),
        )


def _has_schedule(seen: Seen) -> bool:
    """Whether moves start from what is shown: a draft's from the default schedule, others' from that of a parent."""
    return not seen.parents or any(parent.schedule_json is not None for parent in seen.parents)


def _fills_in(answer: Written | Unwritten) -> bool:
    """Whether the schedule writer takes an index over: a model could not be asked, or had nothing to choose from."""
    return isinstance(answer, Unwritten) and (answer.pauses or answer.code == EXHAUSTED)


def _instead(asked: Written | Unwritten | None, written: Written | Unwritten) -> Written | Unwritten:
    """``written`` by a schedule at an index that a model was asked for in vain, with what that was and cost."""
    if asked is None or asked.context is None:
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


def _stopped(written: list[Written | Unwritten]) -> Unwritten | None:
    """Why nothing at all could be written until somebody acts; None when something was, or a model answered what is no
    kernel: that is told for itself, with its conversation, and the next expansion pauses.
    """
    if any(isinstance(answer, Written) or _answered(answer) for answer in written):
        return None
    return next((answer for answer in written if isinstance(answer, Unwritten) and answer.pauses), None)


def _answered(answer: Unwritten) -> bool:
    return not answer.pauses and answer.context is not None and bool(answer.context.endpoint)
