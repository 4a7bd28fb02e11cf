"""The model as a writer: one conversation per index, and what each came to as a kernel or a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shared import ids
from shared.clock import Clock
from shared.events import KernelRef
from shared.store import Blobs
from shared.trial_build import TrialBuild
from synthesizer_svc.answers import Unwritten, Written
from synthesizer_svc.asking.conversation import Conversation, Outcome, Problem
from synthesizer_svc.asking.form import Form, form_of
from synthesizer_svc.asking.moves import Moves
from synthesizer_svc.asking.room import Room
from synthesizer_svc.asking.settings import HYBRID, AskingSettings
from synthesizer_svc.asking.share import MOVES
from synthesizer_svc.asking.trials import Trials
from synthesizer_svc.asking.ways import Draft, Edits, Way, Whole
from synthesizer_svc.counting import CountingComposer, Tokenizer
from synthesizer_svc.gather import Seen
from synthesizer_svc.model import CompletionRequest, Message, Model, ModelErrorCode, Role
from synthesizer_svc.prompts import Asking, DoesNotFit, Prompt
from synthesizer_svc.prompts.budget import PartName
from synthesizer_svc.schedule.offer import Offer, offer
from synthesizer_svc.schedule.schedule import Schedule
from synthesizer_svc.schedule.synthesize import Prepared, situation_of
from synthesizer_svc.settings import ModelSettings

EXHAUSTED = "exhausted"
Answer = Written | Unwritten
Each = Callable[[int, Answer], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A conversation that was held, and what its question was stored as."""

    outcome: Outcome
    asking: Asking
    prompt: Prompt
    prompt_hash: str


class ModelWriter:
    """Writes kernels by asking ``model``; ``trials`` builds them before they are handed on."""

    def __init__(
        self,
        model: Model,
        blobs: Blobs,
        clock: Clock,
        *,
        limits: ModelSettings,
        asking: AskingSettings,
        trials: TrialBuild | None,
        contexts: Iterable[int] = (),
        tokenizer: Tokenizer | None = None,
    ) -> None:
        """``contexts``: tokens of the endpoints', 0 where unknown. ``tokenizer`` counts for all of them, or is None."""
        self._room = Room.of(contexts, asking.prompt_tokens_max)
        self._composer = CountingComposer(tokenizer)
        self._model, self._blobs, self._clock = model, blobs, clock
        self._limits, self._asking, self._trials = limits, asking, trials

    async def write(
        self,
        seen: Seen,
        language: str,
        arms: Mapping[int, str],
        prepared: Prepared | None,
        *,
        avoid: frozenset[str],
        chosen: Mapping[int, str],
        taken: frozenset[str],
        each: Each,
    ) -> None:
        """Give ``each`` one answer for each index of ``arms``, which says how it is written, as soon as it is there.

        Rewriting conversations go on side by side. Moves are chosen one after the other, each from what those before
        it left, so that no two of an expansion are the same kernel. Of equal kernels that models came to, the one that
        is there first stands.

        ``avoid`` are kernels of this expansion that no answer may come to: not on offer, and sent back like those that
        the search has. ``chosen`` are those that moves came to at other indices, and ``taken`` all that there are.
        """
        form = form_of(language, seen.machine, seen.expansion.threads)
        known = avoid | frozenset(seen.expansion.known_kernel_ids)
        used = set(taken)

        async def told(index: int, held: Held | Unwritten) -> None:
            await each(index, held if isinstance(held, Unwritten) else await self._answer(seen, held, used))

        async def rewritten(index: int) -> None:
            await told(index, await self._rewritten(seen, form, index, known))

        async def by_moves() -> None:
            came_to = dict(chosen)
            for index in sorted(index for index, arm in arms.items() if arm == MOVES):
                before = known | {kernel for other, kernel in came_to.items() if other < index}
                held = await self._by_moves(seen, form, prepared, index, before)
                if isinstance(held, Held) and isinstance(held.outcome.result, Draft):
                    came_to[index] = held.outcome.result.kernel_id
                await told(index, held)

        await _all(by_moves(), *(rewritten(index) for index, arm in sorted(arms.items()) if arm != MOVES))

    async def _by_moves(
        self, seen: Seen, form: Form, prepared: Prepared | None, index: int, known: frozenset[str]
    ) -> Held | Unwritten:
        assert prepared is not None
        # A nearly exhausted neighbourhood renders hundreds of schedules.
        given = await asyncio.to_thread(self._offer, seen, prepared, known)
        if given.singles:
            return await self._held(seen, form, Moves(given, prepared, known), index, known)
        detail = "every single move from here makes a kernel that the search has, or was tried"
        context = replace(seen.context(skill_ids=()), asking=MOVES)
        return Unwritten(code=EXHAUSTED, detail=detail, context=context)

    def _offer(self, seen: Seen, prepared: Prepared, known: frozenset[str]) -> Offer:
        def is_known(schedule: Schedule) -> bool:
            return prepared.kernel_id(schedule) in known

        return offer(situation_of(seen, prepared), is_known, self._asking.moves_offered_max)

    async def _rewritten(self, seen: Seen, form: Form, index: int, known: frozenset[str]) -> Held | Unwritten:
        parent = seen.parents[0] if seen.parents and seen.parents[0].kernel.language == form.language else None
        whole: Way = Whole(form)
        if parent is None or self._asking.asking not in (Asking.EDITS.value, HYBRID):
            return await self._held(seen, form, whole, index, known)
        long = parent.source.count("\n") > self._asking.edits_lines
        edits = long or self._asking.asking == Asking.EDITS.value
        return await self._held(seen, form, Edits(form, parent.source) if edits else whole, index, known)

    async def _held(self, seen: Seen, form: Form, way: Way, index: int, known: frozenset[str]) -> Held | Unwritten:
        expansion, limits = seen.expansion, self._limits
        by_moves = way.asking is Asking.MOVES
        tokens_max = self._asking.moves_output_tokens_max if by_moves else limits.output_tokens_max
        tokens_max = self._room.answer(min(tokens_max, limits.output_tokens_max))
        try:
            prompt = await self._prompt(seen, form, way, tokens_max)
        except (DoesNotFit, ValueError) as error:
            context = replace(seen.context(skill_ids=()), asking=way.asking.value)
            return Unwritten(code=ModelErrorCode.CONTEXT.value, detail=str(error), context=context)
        request = CompletionRequest(
            system=prompt.system,
            messages=(Message(role=Role.USER, text=prompt.user),),
            # Fits the 31-bit seeds that endpoints take.
            seed=int(ids.derive(expansion.seed, expansion.expansion_id, index), 16) % (1 << 31),
            output_tokens_max=tokens_max,
            deadline_s=limits.deadline_s,
            schema=way.schema,
            search_id=expansion.search_id,
            budget=expansion.model_budget,
            endpoints=expansion.endpoints,
        )
        prompt_hash = await self._blobs.put(request.text.encode("utf-8", "replace"))
        conversation = Conversation(
            model=self._model,
            trials=Trials(self._trials, expansion.chip, self._asking.trial_s),
            clock=self._clock,
            room=self._room,
            way=way,
            form=form,
            known=known,
        )
        outcome = await conversation.hold(
            request,
            prompt_tokens=prompt.tokens,
            repairs_max=self._asking.repair_turns,
            repair_tokens_max=self._asking.repair_tokens_max,
        )
        return Held(outcome=outcome, asking=way.asking, prompt=prompt, prompt_hash=prompt_hash)

    async def _prompt(self, seen: Seen, form: Form, way: Way, answer_tokens: int) -> Prompt:
        """The question, in what an answer of ``answer_tokens`` leaves of the context.

        Raises:
            DoesNotFit, ValueError: it leaves too little, or nothing.
        """
        given = seen.prompt_input(
            language=form.language,
            flags=form.flags,
            entry=form.entry,
            quoted_max=self._limits.quoted_kernels_max,
            asking=way.asking,
            choices=way.choices,
        )
        return await self._composer.compose(given, self._room.question(answer_tokens))

    async def _answer(self, seen: Seen, held: Held, taken: set[str]) -> Answer:
        """What ``held`` comes to; a kernel is added to ``taken``."""
        outcome, result = held.outcome, held.outcome.result
        skills = result.skill_ids if isinstance(result, Draft) else None
        shown = held.prompt.shown
        context = replace(
            seen.context(
                skill_ids=shown(PartName.SKILLS) if skills is None else skills,
                prompt_hash=held.prompt_hash,
            ),
            sibling_ids=shown(PartName.SIBLINGS),
            negative_ids=shown(PartName.FAILURES),
            document_ids=shown(PartName.DOCUMENTS),
            conversation_hash=await self._blobs.put(outcome.record),
            asking=held.asking.value,
            endpoint=outcome.endpoint,
            model=outcome.model,
        )
        if isinstance(result, Problem):
            return Unwritten(
                code=result.code, detail=result.detail, usage=outcome.usage, context=context, pauses=result.pauses
            )
        if result.kernel_id in taken:
            detail = f"kernel {result.kernel_id}, which this expansion has already"
            return Unwritten(code="duplicate", detail=detail, usage=outcome.usage, context=context)
        taken.add(result.kernel_id)
        kernel = KernelRef(
            kernel_id=result.kernel_id,
            language=result.form.language,
            source_hash=await self._blobs.put(result.source.encode()),
            flags=result.form.flags,
            entry=result.form.entry,
            schedule_hash=await self._blobs.put(result.schedule.to_json()) if result.schedule else "",
        )
        return Written(kernel=kernel, move=result.move, context=context, usage=outcome.usage)


async def _all(*conversations: Coroutine[Any, Any, None]) -> None:
    """Wait for all of ``conversations``, also when one fails: what the others are answered is paid for, and on record.

    Raises:
        Exception: the first one's failure.
    """
    for ended in await asyncio.gather(*conversations, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended
