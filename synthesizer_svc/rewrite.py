"""The model as a writer: compose a prompt, ask, parse the answer as hostile, and hand back a kernel or the reason."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from shared import ids
from shared.clock import Clock
from shared.events import Entry, KernelRef, Move, Usage
from shared.store import Blobs
from synthesizer_svc.answers import Unwritten, Written
from synthesizer_svc.gather import Seen
from synthesizer_svc.model import Completion, CompletionRequest, Message, Model, ModelError, Role
from synthesizer_svc.answer_text import Parsed, Unparsable, parse
from synthesizer_svc.prompts import Prompt, compose
from synthesizer_svc.settings import ModelSettings

ENTRY = "ke_launch"
OPTIMISE = "-O3"


class ModelWriter:
    """Writes kernels by asking ``model``."""

    def __init__(self, model: Model, blobs: Blobs, clock: Clock, limits: ModelSettings) -> None:
        self._model = model
        self._blobs = blobs
        self._clock = clock
        self._limits = limits

    async def write(
        self, seen: Seen, language: str, indices: tuple[int, ...], taken: frozenset[str]
    ) -> tuple[Written | Unwritten, ...]:
        """One answer per index. A kernel in ``taken`` or among the search's own is a duplicate, not an answer."""
        flags = kernel_flags(seen)
        quoted_max = self._limits.quoted_kernels_max
        prompt = compose(seen.prompt_input(language=language, flags=flags, entry=ENTRY, quoted_max=quoted_max))
        prompt_hash = await self._blobs.put(f"{prompt.system}\n\n{prompt.user}".encode())
        known = set(taken) | set(seen.expansion.known_kernel_ids)
        answers: list[Written | Unwritten] = []
        for index, asked in zip(indices, await self._ask_all(seen, prompt, indices), strict=True):
            answer = await self._answer(seen, language, flags, index, asked, prompt_hash)
            if isinstance(answer, Written) and answer.kernel.kernel_id in known:
                answer = Unwritten(code="duplicate", detail=f"kernel {answer.kernel.kernel_id}", usage=answer.usage)
            if isinstance(answer, Written):
                known.add(answer.kernel.kernel_id)
            answers.append(answer)
        return tuple(answers)

    async def _ask_all(self, seen: Seen, prompt: Prompt, indices: tuple[int, ...]) -> list[Completion | Unwritten]:
        return await asyncio.gather(*(self._ask(seen, prompt, index) for index in indices))

    async def _ask(self, seen: Seen, prompt: Prompt, index: int) -> Completion | Unwritten:
        request = CompletionRequest(
            system=prompt.system,
            messages=(Message(role=Role.USER, text=prompt.user),),
            # Fits the 31-bit seeds that endpoints take.
            seed=int(ids.derive(seen.expansion.seed, seen.expansion.expansion_id, index), 16) % (1 << 31),
            output_tokens_max=self._limits.output_tokens_max,
            deadline_s=self._limits.deadline_s,
            search_id=seen.expansion.search_id,
        )
        began = self._clock.monotonic_ns()
        try:
            completion = await asyncio.wait_for(self._model.complete(request), self._limits.deadline_s)
        except ModelError as error:
            return Unwritten(code=error.code, detail=error.detail, usage=self._spent(error.usage, began))
        except TimeoutError:
            detail = f"no answer within {self._limits.deadline_s:.0f} s"
            return Unwritten(code="deadline", detail=detail, usage=self._spent(Usage(), began))
        return replace(completion, usage=self._spent(completion.usage, began))

    def _spent(self, usage: Usage, began_ns: int) -> Usage:
        return replace(usage, latency_ns=self._clock.monotonic_ns() - began_ns)

    async def _answer(
        self,
        seen: Seen,
        language: str,
        flags: tuple[str, ...],
        index: int,
        asked: Completion | Unwritten,
        prompt_hash: str,
    ) -> Written | Unwritten:
        if isinstance(asked, Unwritten):
            return asked
        parsed = parse(asked.text, language=language, entry=ENTRY, truncated=asked.truncated)
        if isinstance(parsed, Unparsable):
            return Unwritten(code=parsed.code, detail=parsed.detail, usage=asked.usage)
        return await self._written(seen, language, flags, index, parsed, asked.usage, prompt_hash)

    async def _written(
        self,
        seen: Seen,
        language: str,
        flags: tuple[str, ...],
        index: int,
        parsed: Parsed,
        usage: Usage,
        prompt_hash: str,
    ) -> Written:
        source_hash = await self._blobs.put(parsed.source.encode())
        return Written(
            kernel=KernelRef(
                kernel_id=ids.derive(language, source_hash, *flags, ENTRY),
                language=language,
                source_hash=source_hash,
                flags=flags,
                entry=ENTRY,
            ),
            move=Move(
                name="rewrite",
                parameters=(Entry(name="model", value=self._model.name), Entry(name="index", value=str(index))),
                rationale=parsed.rationale,
            ),
            context=seen.context(skill_ids=tuple(s.skill_id for s in seen.skills), prompt_hash=prompt_hash),
            usage=usage,
        )


def kernel_flags(seen: Seen) -> tuple[str, ...]:
    """Build flags of a model's kernel: a model chooses its code, never its compiler flags."""
    threads = ("-fopenmp",) if seen.expansion.threads > 1 else ()
    return (OPTIMISE, *seen.machine.flags, *threads)
