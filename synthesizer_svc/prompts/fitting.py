"""From the parts of a prompt to those that a token budget leaves (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import KernelEvolveError
from synthesizer_svc.prompts.budget import (
    CUTTING_ORDER,
    DROPPING_ORDER,
    FLOOR_TOKENS,
    NEVER_DROPPED,
    PartName,
    TokenBudget,
)
from synthesizer_svc.prompts.given import Fate, PartUsed
from synthesizer_svc.prompts.pieces import Part, shortened
from synthesizer_svc.prompts.tokens import JOINT_TOKENS, TokenCounter


class DoesNotFit(KernelEvolveError):
    """Contract, operator, parents and choices alone exceed the budget, cut as far as they may be."""

    def __init__(self, tokens: int, budget: int) -> None:
        self.tokens, self.budget = tokens, budget
        super().__init__(f"the prompt needs {tokens} tokens, {budget} are left for it")


class Fitted:
    """A part as it is shown."""

    def __init__(self, part: Part, counter: TokenCounter) -> None:
        self.part, self._counter = part, counter
        self.texts = [piece.text() for piece in part.pieces]
        self.cut = False

    @property
    def text(self) -> str:
        return self.part.joint.join([*([self.part.heading] if self.part.heading else []), *self.texts])

    @property
    def tokens(self) -> int:
        """Of all that it shows, with what separates it from the next part."""
        heading = self._counted(self.part.heading) if self.texts and self.part.heading else 0
        return heading + sum(self._counted(text) for text in self.texts)

    @property
    def used(self) -> PartUsed:
        if not self.texts:
            return PartUsed(name=self.part.name, tokens=0, fate=Fate.DROPPED)
        whole = len(self.texts) == len(self.part.pieces) and not self.cut
        fate = Fate.KEPT if whole else Fate.CUT
        shown = self.part.pieces[: len(self.texts)]
        ids = tuple(piece.id for piece in shown if piece.id)
        return PartUsed(name=self.part.name, tokens=self.tokens, fate=fate, ids=ids)

    def drop_last(self) -> None:
        self.texts.pop()

    def shorten(self, tokens: int) -> None:
        """Cut every piece to its equal share of ``tokens`` where it exceeds that, as far as it can be cut."""
        room = tokens - (self.tokens - sum(map(self._counted, self.texts)))
        for position, text in enumerate(self.texts):
            share = room // (len(self.texts) - position)
            if self._counted(text) > share:
                within = max(share, FLOOR_TOKENS) - self._counted("")
                shorter = shortened(self.part.pieces[position], within, self._counter)
                if shorter is not None and self._counted(shorter) < self._counted(text):
                    self.texts[position], self.cut = shorter, True
            room -= self._counted(self.texts[position])

    def _counted(self, text: str) -> int:
        return self._counter.count(f"{text}\n\n") + JOINT_TOKENS


def fit(parts: Sequence[Part], system_tokens: int, budget: TokenBudget, counter: TokenCounter) -> tuple[Fitted, ...]:
    """``parts`` as far as ``budget`` allows beside a system message of ``system_tokens``.

    Raises:
        DoesNotFit: what is never dropped is too much.
    """
    fitted = {part.name: Fitted(part, counter) for part in parts}
    for name, part in fitted.items():
        _within_its_share(part, budget.share(name))

    def excess() -> int:
        return system_tokens + sum(part.tokens for part in fitted.values()) - budget.tokens

    for name in DROPPING_ORDER:
        dropping = fitted.get(name)
        while dropping and dropping.texts and excess() > 0:
            dropping.drop_last()
    for name in CUTTING_ORDER:
        if name in fitted and (over := excess()) > 0:
            fitted[name].shorten(fitted[name].tokens - over)
    if (over := excess()) > 0:
        raise DoesNotFit(budget.tokens + over, budget.tokens)
    return tuple(fitted.values())


def _within_its_share(part: Fitted, share: int) -> None:
    """Drop from the end, and cut what alone exceeds the share; what is never dropped is only cut."""
    if part.part.name in NEVER_DROPPED:
        if part.part.name in CUTTING_ORDER and part.tokens > share:
            part.shorten(share)
        return
    while part.tokens > share and len(part.texts) > 1:
        part.drop_last()
    if part.tokens > share:
        part.shorten(share)
    if part.tokens > max(share, FLOOR_TOKENS) and part.part.name is not PartName.DIAGNOSIS:
        part.drop_last()
