"""One universal prompt, composed from whatever is known at a node (pure)."""

from synthesizer_svc.prompts.compose import SOURCE_CHARS_MAX, compose
from synthesizer_svc.prompts.given import Asking, Fate, PartUsed, Prompt, PromptInput, Quoted

__all__ = ["SOURCE_CHARS_MAX", "Asking", "Fate", "PartUsed", "Prompt", "PromptInput", "Quoted", "compose"]
