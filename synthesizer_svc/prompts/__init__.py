"""One universal prompt, composed from whatever is known at a node (pure)."""

from synthesizer_svc.prompts.budget import TokenBudget
from synthesizer_svc.prompts.compose import compose, has_contract
from synthesizer_svc.prompts.fitting import DoesNotFit
from synthesizer_svc.prompts.given import Asking, Fate, PartUsed, Prompt, PromptInput, Quoted
from synthesizer_svc.prompts.tokens import ByteBound, Counted, TokenCounter

__all__ = [
    "Asking",
    "ByteBound",
    "Counted",
    "DoesNotFit",
    "Fate",
    "PartUsed",
    "Prompt",
    "PromptInput",
    "Quoted",
    "TokenBudget",
    "TokenCounter",
    "compose",
    "has_contract",
]
