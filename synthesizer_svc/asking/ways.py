"""The ways of asking, as seen from a conversation: what an answer is read as, and what is said when it cannot be used.

A way lives as long as its conversation: edits are made on what the edits before them left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shared.events import Move
from synthesizer_svc.answer_text import Parsed, Unparsable, edits, parse
from synthesizer_svc.asking.form import Form
from synthesizer_svc.model import Completion
from synthesizer_svc.prompts import Asking
from synthesizer_svc.schedule.schedule import Schedule

REWRITE, EDIT = "rewrite", "edit"
"""Names of moves."""
EDIT_PROBLEMS = ("unmatched_edit", "ambiguous_edit", "no_change")
EDIT_PROBLEMS_MAX = 2
"""After so many the whole kernel is asked for: a model that misquotes a text twice does it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A kernel as a model wrote it, or chose its schedule; nothing of it has been built."""

    kernel_id: str
    source: str
    form: Form
    move: Move
    schedule: Schedule | None = None
    """The emitter wrote the source: it needs no trial."""
    skill_ids: tuple[str, ...] | None = None
    """Those that bore on it; None for all that were shown."""


class Way(Protocol):
    @property
    def asking(self) -> Asking: ...
    @property
    def schema(self) -> str:
        """Of ``CompletionRequest``."""
        ...

    @property
    def choices(self) -> str:
        """Of ``PromptInput``."""
        ...

    def read(self, completion: Completion) -> Draft | Unparsable:
        """What an answer says."""
        ...

    def form_again(self) -> str:
        """In which form to answer next: ``whole``, ``edits`` or ``moves``."""
        ...


class Whole:
    """The whole kernel in a fenced block."""

    asking, schema, choices = Asking.WHOLE, "", ""

    def __init__(self, form: Form) -> None:
        self._form = form

    def read(self, completion: Completion) -> Draft | Unparsable:
        parsed = parse(
            completion.text, language=self._form.language, entry=self._form.entry, truncated=completion.truncated
        )
        return parsed if isinstance(parsed, Unparsable) else _draft(self._form, REWRITE, parsed)

    def form_again(self) -> str:
        return "whole"


class Edits:
    """SEARCH/REPLACE against ``parent``; a whole kernel is taken, too, and asked for when edits keep failing."""

    asking, schema, choices = Asking.EDITS, "", ""

    def __init__(self, form: Form, parent: str) -> None:
        self._form, self._text = form, parent
        self._problems = 0

    def read(self, completion: Completion) -> Draft | Unparsable:
        parsed = edits.parse(
            completion.text,
            self._text,
            language=self._form.language,
            entry=self._form.entry,
            truncated=completion.truncated,
        )
        if isinstance(parsed, Unparsable):
            self._problems += parsed.code in EDIT_PROBLEMS
            return parsed
        self._text = parsed.source
        return _draft(self._form, EDIT, parsed)

    def form_again(self) -> str:
        return "edits" if self._problems < EDIT_PROBLEMS_MAX else "whole"


def _draft(form: Form, name: str, parsed: Parsed) -> Draft:
    return Draft(
        kernel_id=form.kernel_id(parsed.source),
        source=parsed.source,
        form=form,
        move=Move(name=name, rationale=parsed.rationale),
    )
