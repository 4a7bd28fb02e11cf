"""One exchange with a model: a question, its answer, and questions again while the answer can be mended.

What a later turn brings replaces what an earlier one brought only when it is a kernel: a draft that does not build is
better than nothing, because its failure is measured and remembered.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from shared.clock import Clock
from shared.events import Usage
from shared.usage import UNKNOWN, total
from synthesizer_svc.answer_text import Unparsable
from synthesizer_svc.asking import complaint
from synthesizer_svc.asking.form import Form
from synthesizer_svc.asking.record import BUILD, KERNEL, Record
from synthesizer_svc.asking.room import Room
from synthesizer_svc.asking.trials import Trials
from synthesizer_svc.asking.ways import Draft, Way
from synthesizer_svc.model import Completion, CompletionRequest, Message, Model, ModelError, ModelErrorCode, Role
from synthesizer_svc.model.estimate import MESSAGE_TOKENS, text_tokens

QUOTED_CHARS_MAX = 60_000
"""Of an answer when the model is shown it again."""
NO_TEXT = "(no text)"
"""Stands for an empty answer, which endpoints refuse to be shown."""
GIVEN_UP = 1.1
"""Of a deadline. Models keep it themselves, and know what it cost; one that does not is cut off, and nobody knows."""
BYTES_PER_TOKEN = 3
"""About, of code. Another answer is about as long as the one that it mends."""
ANSWER_TOKENS_MIN = 64
"""Less room than this is no room for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why there is no kernel; ``code`` as in ``CandidateRejected``."""

    code: str
    detail: str
    pauses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``result`` is what came of it. ``endpoint`` and ``model`` are those of the last answer; where there was none,
    ``endpoint`` is who was asked for it.
    """

    result: Draft | Problem
    record: bytes
    usage: Usage
    endpoint: str = ""
    model: str = ""


class Conversation:
    """Holds one exchange in ``room``; ``known`` kernels are duplicates."""

    def __init__(
        self, *, model: Model, trials: Trials, clock: Clock, room: Room, way: Way, form: Form, known: frozenset[str]
    ) -> None:
        self._model, self._trials, self._clock, self._room = model, trials, clock, room
        self._way, self._form, self._known = way, form, known
        self._record = Record()
        self._usage = Usage()
        self._latest = Usage()
        self._endpoint = self._name = ""

    async def hold(
        self, request: CompletionRequest, *, prompt_tokens: int, repairs_max: int, repair_tokens_max: int
    ) -> Outcome:
        """Ask ``request``, and up to ``repairs_max`` times again, for at most ``repair_tokens_max`` tokens more.

        ``prompt_tokens`` are those of ``request``. Nothing is asked again for which the context has no room.
        """
        result: Draft | Problem | None = None
        repairs = spent = 0
        said_tokens, answer_tokens_max = prompt_tokens, request.output_tokens_max
        while True:
            answer = await self._ask(request)
            if isinstance(answer, ModelError):
                result = result or _gave_none(answer)
                break
            read = self._read(answer)
            if isinstance(read, Draft):
                result = read
                wrong = await self._build(read)
            else:
                result = result if isinstance(result, Draft) else Problem(code=read.code, detail=read.detail)
                wrong = complaint.about_answer(read, self._form, self._way.form_again()) if read.mendable else ""
            spent += _tokens(self._latest) if repairs else 0
            # Another turn reads all of this one again, and writes about as much.
            if not wrong or repairs == repairs_max or spent + _tokens(self._latest) > repair_tokens_max:
                break
            shown = _shown(answer)
            # Bounds of texts: what was counted is not on record, and an expansion taken up again decides the same.
            said_tokens += min(request.output_tokens_max, text_tokens(shown)) + text_tokens(wrong) + 2 * MESSAGE_TOKENS
            left = self._room.left(said_tokens, answer_tokens_max)
            if left < min(answer_tokens_max, max(ANSWER_TOKENS_MIN, text_tokens(shown) // BYTES_PER_TOKEN)):
                break
            repairs += 1
            request = _again(request, shown, wrong, left)
        return Outcome(
            result=result,
            record=self._record.to_bytes(),
            usage=self._usage,
            endpoint=self._endpoint,
            model=self._name,
        )

    async def _ask(self, request: CompletionRequest) -> Completion | ModelError:
        self._record.asked(request, self._way.asking.value)
        began = self._clock.monotonic_ns()
        try:
            completion = await asyncio.wait_for(self._model.complete(request), request.deadline_s * GIVEN_UP)
        except ModelError as error:
            return self._failed(error, began)
        except TimeoutError:
            # It was probably sent, and is billed.
            lost = Usage(requests=1, cost_micro=UNKNOWN, estimated=True)
            late = ModelError(ModelErrorCode.DEADLINE, f"no answer within {request.deadline_s:g} s", usage=lost)
            return self._failed(late, began)
        self._spend(completion.usage, began)
        self._endpoint, self._name = completion.endpoint, completion.model
        self._record.answered(completion, self._latest)
        return completion

    def _failed(self, error: ModelError, began_ns: int) -> ModelError:
        self._spend(error.usage, began_ns)
        self._record.failed(error, self._latest)
        self._endpoint = self._endpoint or error.endpoint
        return error

    def _spend(self, usage: Usage, began_ns: int) -> None:
        self._latest = replace(usage, latency_ns=self._clock.monotonic_ns() - began_ns)
        self._usage = total(self._usage, self._latest)

    def _read(self, answer: Completion) -> Draft | Unparsable:
        if answer.refused:
            read: Draft | Unparsable = Unparsable(code="refused", detail=" ".join(answer.text.split())[:120])
        else:
            read = self._way.read(answer)
        if isinstance(read, Draft) and read.kernel_id in self._known:
            read = Unparsable(code="duplicate", detail=f"this is kernel {read.kernel_id}, which is known")
        if isinstance(read, Unparsable):
            self._record.rejected(read)
        return read

    async def _build(self, draft: Draft) -> str:
        """What to say of a draft that does not build; empty for one that does, as far as is known."""
        errors = await self._trials.errors(draft)
        if errors is None:
            self._record.came_to(KERNEL, kernel_id=draft.kernel_id)
            return ""
        self._record.came_to(BUILD, f"{errors.status.value}: {errors.text}", draft.kernel_id)
        return complaint.about_build(errors, self._form, self._way.form_again())


def _gave_none(error: ModelError) -> Problem:
    return Problem(code=error.code, detail=error.detail, pauses=error.pauses)


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def _shown(answer: Completion) -> str:
    """What the model is shown of its answer."""
    said = answer.text.encode("utf-8", "replace").decode()
    if len(said) > QUOTED_CHARS_MAX:
        said = f"{said[:QUOTED_CHARS_MAX]}\n[...]"
    return said if said.strip() else NO_TEXT


def _again(request: CompletionRequest, shown: str, wrong: str, answer_tokens_max: int) -> CompletionRequest:
    """The same conversation, two messages longer."""
    more = (Message(role=Role.ASSISTANT, text=shown), Message(role=Role.USER, text=wrong))
    return replace(request, messages=(*request.messages, *more), output_tokens_max=answer_tokens_max)
