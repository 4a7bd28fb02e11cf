"""From a model's text to what it says, or to a typed rejection (pure).

The text is hostile input: it is never run here, never trusted to be complete, and "the whole reply as code" is never an
answer. Every function here takes any text, raises nothing and needs time linear in its length.
"""

from synthesizer_svc.answer_text.outcome import MENDABLE, Parsed, Unparsable
from synthesizer_svc.answer_text.source import ANSWER_CHARS_MAX, SOURCE_BYTES_MAX
from synthesizer_svc.answer_text.whole import parse

__all__ = ["ANSWER_CHARS_MAX", "MENDABLE", "SOURCE_BYTES_MAX", "Parsed", "Unparsable", "parse"]
