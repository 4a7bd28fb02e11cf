"""One exchange with a model: a question, its answer, and questions again while the answer can be mended.

What a later turn brings replaces what an earlier one brought only when it is a kernel: a draft that does not build is
better than nothing, because its failure is measured and remembered.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from shared.clock import Clock
from shared.events import Usage
from shared.usage import total
from synthesizer_svc.answer_text import Unparsable
from synthesizer_svc.asking import complaint
from synthesizer_svc.asking.form import Form
from synthesizer_svc.asking.record import BUILD, KERNEL, Record
from synthesizer_svc.asking.trials import Trials
from synthesizer_svc.asking.ways import Draft, Way
from synthesizer_svc.model import Completion, CompletionRequest, Message, Model, ModelError, ModelErrorCode, Role

QUOTED_CHARS_MAX = 60_000
"""Of an answer when the model is shown it again."""
NO_TEXT = "(no text)"
"""Stands for an empty answer, which endpoints refuse to be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why there is no kernel; ``code`` as in ``CandidateRejected``."""

    code: str
    detail: str
    pauses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``result`` is what came of it. ``endpoint`` and ``model`` are those of the last answer."""

    result: Draft | Problem
    record: bytes
    usage: Usage
    endpoint: str = ""
    model: str = ""


class Conversation:
    """Holds one exchange; ``known`` kernels are duplicates."""

    def __init__(
        self, *, model: Model, trials: Trials, clock: Clock, way: Way, form: Form, known: frozenset[str]
    ) -> None:
        self._model, self._trials, self._clock = model, trials, clock
        self._way, self._form, self._known = way, form, known
        self._record = Record()
        self._usage = Usage()
        self._latest = Usage()
        self._endpoint = self._name = ""

    async def hold(self, request: CompletionRequest, *, repairs_max: int, repair_tokens_max: int) -> Outcome:
        """Ask ``request``, and up to ``repairs_max`` times again, for at most ``repair_tokens_max`` tokens more."""
        result: Draft | Problem | None = None
        repairs = spent = 0
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
            repairs += 1
            request = _again(request, answer, wrong)
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
            completion = await asyncio.wait_for(self._model.complete(request), request.deadline_s)
        except ModelError as error:
            return self._failed(error, began)
        except TimeoutError:
            late = ModelError(ModelErrorCode.DEADLINE, f"no answer within {request.deadline_s:g} s")
            return self._failed(late, began)
        self._spend(completion.usage, began)
        self._endpoint, self._name = completion.endpoint, completion.model
        self._record.answered(completion, self._latest)
        return completion

    def _failed(self, error: ModelError, began_ns: int) -> ModelError:
        self._spend(error.usage, began_ns)
        self._record.failed(error, self._latest)
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


def _again(request: CompletionRequest, answer: Completion, wrong: str) -> CompletionRequest:
    """The same conversation, two messages longer."""
    said = answer.text.encode("utf-8", "replace").decode()
    if len(said) > QUOTED_CHARS_MAX:
        said = f"{said[:QUOTED_CHARS_MAX]}\n[...]"
    shown = Message(role=Role.ASSISTANT, text=said if said.strip() else NO_TEXT)
    return replace(request, messages=(*request.messages, shown, Message(role=Role.USER, text=wrong)))
