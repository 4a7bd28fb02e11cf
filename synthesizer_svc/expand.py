"""One expansion, answered: which writer writes which index, and the facts that result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from shared import chips
from shared.clock import Clock
from shared.errors import ChipError, Poison
from shared.events import CandidateProduced, CandidateRejected, ExpansionFailed, ExpansionRequested
from shared.knowledge import Knowledge
from shared.machine import Processor
from shared.store import Blobs, Documents
from shared.trial_build import TrialBuild
from shared.writers import SCHEDULE
from synthesizer_svc import answers
from synthesizer_svc.answers import Unwritten, Written
from synthesizer_svc.asking import share
from synthesizer_svc.asking.settings import HYBRID
from synthesizer_svc.asking.writer import ModelWriter
from synthesizer_svc.counting import Tokenizer
from synthesizer_svc.gather import Gatherer, Seen, load_operator
from synthesizer_svc.model import Model
from synthesizer_svc.prompts import has_contract
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.lowering import Lowering
from synthesizer_svc.schedule.synthesize import Prepared, ScheduleWriter
from synthesizer_svc.settings import Settings
from synthesizer_svc.writing import Writing

Fact = CandidateProduced | CandidateRejected | ExpansionFailed
Tell = Callable[[tuple[Fact, ...]], Awaitable[None]]


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

    async def expand(self, expansion: ExpansionRequested, tell: Tell, before: Sequence[Fact] = ()) -> None:
        """Give ``tell`` the facts that answer ``expansion``, each as soon as it stands: schedules at once, a model's
        when it has answered. Indices that ``before`` answers already, from an earlier delivery, are left out.

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
            await tell((self._failed(expansion, "unsupported_chip", str(error)),))
            return
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
            await tell((self._failed(expansion, code, refusal),))
            return
        operator_class = prepared.lowered.operator_class if prepared else ""
        began = self._clock.monotonic_ns()
        seen = await self._gatherer.gather(expansion, operator, chip, machine, language, operator_class)
        gathered_ns = self._clock.monotonic_ns() - began
        await self._write(seen, language, prepared, gathered_ns, tell, before)

    async def _write(
        self,
        seen: Seen,
        language: str,
        prepared: Prepared | None,
        gathered_ns: int,
        tell: Tell,
        before: Sequence[Fact],
    ) -> None:
        expansion = seen.expansion
        writers = self._writers(prepared, seen)

        async def told(found: Mapping[int, Written | Unwritten]) -> None:
            at_ns = self._clock.now_ns()
            await tell(tuple(answers.event(expansion, index, answer, at_ns) for index, answer in found.items()))

        writing = Writing(
            seen,
            language,
            prepared,
            arms=self._arms(expansion, writers),
            writers=writers,
            schedules=self._schedules.get(language),
            model=self._model,
            clock=self._clock,
            gathered_ns=gathered_ns,
            before=[fact for fact in before if not isinstance(fact, ExpansionFailed)],
            tell=told,
        )
        await writing.run()
        if (stopped := writing.stopped) is not None:
            failed = self._failed(expansion, stopped.code, stopped.detail)
            await tell((replace(failed, pauses=True, usage=writing.usage),))

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
