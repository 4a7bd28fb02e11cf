"""An answer under construction, alike for every protocol, and what it amounts to at its end (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from shared.events import Usage
from synthesizer_svc.model import Completion, CompletionRequest, ModelErrorCode
from synthesizer_svc.model.capabilities import Capabilities, Reasoning
from synthesizer_svc.model.estimate import most, prompt_tokens, text_tokens
from synthesizer_svc.model.faults import Fault, garbled, shortened
from synthesizer_svc.model.prices import Prices, cost_micro, dearest_micro

TOKENS_MAX = 1 << 40
"""A count beyond this is none."""
MODEL_NAME_CHARS = 200


class End(StrEnum):
    """Why an answer ended."""

    OWN = "own"
    LIMIT = "limit"
    """Of tokens, the endpoint's or ours."""
    FILTER = "filter"
    """The endpoint's filter cut it off."""
    REFUSAL = "refusal"
    """The model declined."""
    ABORTED = "aborted"
    """The endpoint gave up on it."""


@dataclass(kw_only=True)
class Draft:
    """What has arrived. Counts are None until the endpoint gives them; ``input_tokens`` includes cached ones, and
    ``output_tokens`` all that was written before: with more of the answer it is None again.
    """

    text: list[str] = field(default_factory=list)
    thought: bool = False
    """Whether reasoning was among what arrived."""
    refusal: list[str] = field(default_factory=list)
    end: End | None = None
    whole: bool = False
    """Whether it came as one object, and not in events."""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    def says(self, text: str) -> None:
        """Take in more of the text."""
        self.text.append(text)
        self.output_tokens = None

    def thinks(self) -> None:
        """Take in that it reasons."""
        self.thought, self.output_tokens = True, None

    def declines(self, text: str) -> None:
        """Take in more of a refusal."""
        self.refusal.append(text)
        self.output_tokens = None

    def concluded(self, request: CompletionRequest, capabilities: Capabilities, prices: Prices) -> Completion:
        """The answer.

        Raises:
            Fault: it did not end, or holds nothing.
        """
        usage = self.usage(request, capabilities, prices)
        text, open_thought = without_thoughts(_whole_characters("".join(self.text)))
        declined = _whole_characters("".join(self.refusal))
        if self.end is None or self.end is End.ABORTED:
            why = "gave up on its answer" if self.end else "ended its stream before its answer"
            raise replace_usage(garbled(f"the endpoint {why}"), usage)
        if self.end in (End.FILTER, End.REFUSAL) or declined:
            if not (text or declined):
                raise Fault(ModelErrorCode.REFUSED, "the endpoint's filter left nothing of the answer", usage=usage)
            return Completion(text=text or declined, refused=True, usage=usage, model=self._model())
        if not text.strip() and self.end is not End.LIMIT:
            raise replace_usage(garbled("an empty answer"), usage)
        truncated = self.end is End.LIMIT or open_thought
        return Completion(text=text, truncated=truncated, usage=usage, model=self._model())

    def usage(self, request: CompletionRequest, capabilities: Capabilities, prices: Prices) -> Usage:
        """What it cost, also when it did not end: counts that are missing are estimated, never too low."""
        cached, written = self.cached_tokens or 0, self.cache_write_tokens or 0
        # A count of nothing for something is as good as none, and so is one of less than its own parts.
        prompt = self.input_tokens or None
        if prompt is not None and cached + written > prompt:
            prompt, cached, written = None, 0, 0
        output = self.output_tokens or (None if self.text or self.refusal or self.thought else self.output_tokens)
        if self.end is None and not self.whole:
            output = None  # of a stream so far
        used = Usage(
            input_tokens=prompt_tokens(request) if prompt is None else prompt,
            output_tokens=self._output_at_most(request, capabilities) if output is None else output,
            cached_tokens=cached,
            cache_write_tokens=written,
            reasoning_tokens=self.reasoning_tokens or 0,
            requests=1,
            estimated=prompt is None or output is None,
        )
        # Of a prompt that nobody counted, any part may have been written to a cache.
        cost = dearest_micro(used, prices) if prompt is None else cost_micro(used, prices)
        return replace(used, cost_micro=cost)

    def _output_at_most(self, request: CompletionRequest, capabilities: Capabilities) -> int:
        """A stream that was cut, or a model that thinks in secret, may have generated more than anybody saw."""
        secret = capabilities.reasoning in (Reasoning.HIDDEN, Reasoning.UNKNOWN) or self.thought
        if self.end is None or secret:
            return max(self.output_tokens or 0, request.output_tokens_max)
        visible = sum(text_tokens(piece) for piece in (*self.text, *self.refusal))
        return min(request.output_tokens_max, visible + 1)

    def _model(self) -> str:
        return shortened(self.model)[:MODEL_NAME_CHARS]


def unanswered(request: CompletionRequest, *, generating: bool, prices: Prices) -> Usage:
    """What a request without any answer may have cost. ``generating``: the endpoint may have been at it though
    no byte came, as when it does not stream, or when a proxy keeps streams back until they end.
    """
    used = most(request)
    if not generating:
        used = replace(used, output_tokens=0)
    return replace(used, cost_micro=dearest_micro(used, prices))


def replace_usage(fault: Fault, usage: Usage) -> Fault:
    fault.usage = usage
    return fault


def count(value: object) -> int | None:
    """A token count as an endpoint gives it, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= TOKENS_MAX else None


def without_thoughts(text: str) -> tuple[str, bool]:
    """``text`` after its ``<think>…</think>``, and whether thinking never ended. Some templates open it themselves."""
    start, opened, rest = text.partition("<think>")
    if opened and not start.strip():
        _, closed, after = rest.partition("</think>")
        return (after.lstrip("\n"), False) if closed else ("", True)
    before, closed, after = text.partition("</think>")
    if closed and "<think>" not in before:
        return after.lstrip("\n"), False
    return text, False


def _whole_characters(text: str) -> str:
    """Surrogate halves, which JSON can write and a stream can cut apart, become characters or replacement marks."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
