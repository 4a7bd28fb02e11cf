"""A model that says what a test wants, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shared.events import Usage
from synthesizer_svc.model import Completion, CompletionRequest, ModelError

Said = str | Completion | ModelError
Reply = Callable[[CompletionRequest], Said]
USAGE = Usage(input_tokens=100, output_tokens=10, cost_micro=5, requests=1)


class Talker:
    """Says ``answers`` in order, or what a function makes of each question; ``asked`` has the questions."""

    name = "talker"

    def __init__(self, answers: Iterable[Said] | Reply) -> None:
        self._reply = answers if callable(answers) else None
        self._answers = iter(()) if callable(answers) else iter(answers)
        self.asked: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> Completion:
        self.asked.append(request)
        said = self._reply(request) if self._reply else next(self._answers, ModelError("endpoint", "nothing left"))
        if isinstance(said, ModelError):
            raise said
        if isinstance(said, str):
            return Completion(text=said, usage=USAGE, endpoint="here", model="talker-1")
        return said

    @property
    def complaints(self) -> list[str]:
        """What it was told in further turns."""
        return [request.messages[-1].text for request in self.asked if len(request.messages) > 1]


class Builder:
    """A trial build that finds ``wrong``, in order, and then nothing; ``tried`` has the kernels."""

    def __init__(self, *wrong) -> None:
        self._wrong = iter(wrong)
        self.tried = []

    async def build(self, kernel):
        from shared.trial_build import Built

        self.tried.append(kernel)
        found = next(self._wrong, Built())
        if isinstance(found, Exception):
            raise found
        return found
