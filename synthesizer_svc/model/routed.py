"""Several endpoints as one model: who has paid is asked more, and who is down is passed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shared import ids
from shared.clock import SECOND_NS, Clock
from shared.events import Usage
from shared.usage import total
from synthesizer_svc.model import Completion, CompletionRequest, Model, ModelError, ModelErrorCode
from synthesizer_svc.model.bandit import ranked

FINAL = (ModelErrorCode.REFUSED, ModelErrorCode.DEADLINE)
"""Failures that are not taken to another endpoint."""


@dataclass(frozen=True, slots=True)
class Arm:
    """An endpoint to choose; ``weight`` is its share before results say otherwise, relative to the others'."""

    model: Model
    weight: int = 1


class RoutedModel:
    """Asks the endpoint that ``bandit`` ranks first, and the next one while another may do better: where the breaker is
    open, the key refused, the budget spent, the prompt too long. A refusal is not taken elsewhere.

    All turns of a conversation rank alike, so that one that was begun at an endpoint goes on there, with its cache.
    """

    def __init__(self, arms: Mapping[str, Arm], clock: Clock) -> None:
        self._arms, self._clock = dict(arms), clock
        self._weights = {name: arm.weight for name, arm in self._arms.items()}

    @property
    def name(self) -> str:
        return "+".join(sorted(self._arms))

    async def complete(self, request: CompletionRequest) -> Completion:
        question = ids.derive(request.system, request.messages[0].text, request.schema)
        failed: list[ModelError] = []
        began_ns = self._clock.monotonic_ns()
        for name in ranked(self._weights, request.endpoints, seed=request.seed, question=question):
            left_s = request.deadline_s - (self._clock.monotonic_ns() - began_ns) / SECOND_NS
            if failed and left_s <= 0:
                break
            try:
                completion = await self._arms[name].model.complete(replace(request, deadline_s=left_s))
            except ModelError as error:
                failed.append(error)
                if error.code in FINAL:
                    break
            else:
                return replace(completion, usage=total(*_spent(failed), completion.usage))
        raise _all(failed)


def _spent(failed: list[ModelError]) -> list[Usage]:
    return [error.usage for error in failed]


def _all(failed: list[ModelError]) -> ModelError:
    """Why nobody answered: in the words of each that was asked, with the code of the last, and booked to the one that
    took most.
    """
    last = failed[-1]
    return ModelError(
        last.code,
        "; ".join(dict.fromkeys(error.detail for error in failed)),
        usage=total(*_spent(failed)),
        pauses=all(error.pauses for error in failed),
        retry_after_s=min(error.retry_after_s for error in failed),
        endpoint=max(failed, key=_read_and_written).endpoint,
    )


def _read_and_written(error: ModelError) -> tuple[bool, int]:
    return bool(error.endpoint), error.usage.input_tokens + error.usage.output_tokens
