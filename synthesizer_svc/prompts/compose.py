"""One universal prompt, composed from whatever is known at a node (pure).

There are no separate drafting, debugging and improving prompts: what is asked follows from what is shown. ``system``
depends on chip, language, build flags and asking alone and comes first, so endpoints can cache it; the operator, which
all nodes of a search share, opens ``user``; then come the diagnosis, what is known about it, and the kernels; the task
comes last.
"""

from __future__ import annotations

import re

from shared.abi import HEADER_NAME, header
from shared.errors import UserError
from synthesizer_svc.prompts.budget import UNTOLD, PartName, TokenBudget
from synthesizer_svc.prompts.fitting import fit
from synthesizer_svc.prompts.given import Asking, Fate, PartUsed, Prompt, PromptInput
from synthesizer_svc.prompts.parts import parts, tag
from synthesizer_svc.prompts.rendering import exists, render
from synthesizer_svc.prompts.tokens import ByteBound, TokenCounter

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""Of a language: nothing else becomes part of a template's path."""


def compose(given: PromptInput, budget: TokenBudget = UNTOLD, counter: TokenCounter | None = None) -> Prompt:
    """The prompt for ``given`` within ``budget``; equal inputs give equal bytes.

    Raises:
        DoesNotFit: what is never dropped exceeds the budget.
        UserError: no contract is written for the language.
        ValueError: edits without a kernel to edit, or moves without choices.
    """
    if given.asking is Asking.EDITS and not given.parents:
        raise ValueError("edits need a kernel to edit")
    if given.asking is Asking.MOVES and not given.choices:
        raise ValueError("moves need choices")
    counter = counter or ByteBound()
    system = _system(given)
    system_tokens = counter.count(system)
    shown = fit(tuple(parts(given)), system_tokens, budget, counter)
    return Prompt(
        system=system,
        user="\n\n".join(part.text for part in shown if part.texts),
        parts=(
            PartUsed(name=PartName.SYSTEM, tokens=system_tokens, fate=Fate.KEPT),
            *(part.used for part in shown),
        ),
        exact=counter.exact,
    )


def has_contract(language: str) -> bool:
    """Whether a model can be told what a kernel in ``language`` has to be."""
    return _NAME.fullmatch(language) is not None and exists(f"contract/{language}.j2")


def _system(given: PromptInput) -> str:
    if not has_contract(given.language):
        raise UserError(
            f"no contract is written for kernels in `{given.language}`",
            where=f"chip {given.chip.id}",
            hint="synthesizer_svc/templates/contract",
        )
    return render(
        "system.j2",
        language=given.language,
        tag=tag(given.language),
        asking=given.asking.value,
        entry=given.entry,
        header_name=HEADER_NAME,
        header=header(),
        chip=given.chip,
        isa=given.isa,
        gpu=given.gpu,
        flags=given.flags,
    )
