"""Asking for moves: the model chooses changes of a schedule from a list, and the emitter writes the kernel.

Whatever is chosen is legal, so even a small model always gives a valid kernel. The answer is one JSON object::

    {"because": "why", "changes": [{"decision": "g0.unroll", "value": 4}]}

Canonical JSON sorts names, and a model held to a schema writes in its order: the reason comes before the choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared import ids
from synthesizer_svc.answer_text import Unparsable, choice_json
from synthesizer_svc.asking.form import Form
from synthesizer_svc.asking.ways import Draft
from synthesizer_svc.model import Completion
from synthesizer_svc.prompts import Asking
from synthesizer_svc.schedule.moves import Single
from synthesizer_svc.schedule.offer import CHANGES_MAX, Offer, join
from synthesizer_svc.schedule.schedule import Value
from synthesizer_svc.schedule.synthesize import Prepared

BECAUSE, CHANGES, DECISION, VALUE = "because", "changes", "decision", "value"
BECAUSE_CHARS_MAX = 400
EXAMPLE = (
    f'{{"{BECAUSE}": "<what limits the kernel and why this helps>", '
    f'"{CHANGES}": [{{"{DECISION}": "<name from the list>", "{VALUE}": <one of its values>}}]}}'
)
"""Names nothing on offer: small models answer with what they were shown."""


class Moves:
    """A choice of one to three changes on ``offer``. A kernel in ``known`` is a duplicate."""

    asking = Asking.MOVES

    def __init__(self, offer: Offer, prepared: Prepared, known: frozenset[str]) -> None:
        self._offer, self._prepared, self._known = offer, prepared, known
        self.schema = schema(offer)
        self.choices = choices(offer, prepared.lowered.kinds)

    def read(self, completion: Completion) -> Draft | Unparsable:
        answer = choice_json.parse(completion.text, key=CHANGES, truncated=completion.truncated)
        if isinstance(answer, Unparsable):
            return answer
        chosen = _chosen(self._offer, answer[CHANGES])
        if isinstance(chosen, Unparsable):
            return chosen
        said = answer.get(BECAUSE, "")
        rationale = " ".join(said.split())[:BECAUSE_CHARS_MAX] if isinstance(said, str) else ""
        proposal = join(self._offer, chosen, rationale)
        kernel_id, rendered = self._prepared.render(proposal.schedule)
        if kernel_id in self._known:
            return Unparsable(code="duplicate", detail=f"these changes make kernel {kernel_id}, which is known")
        return Draft(
            kernel_id=kernel_id,
            source=rendered.source,
            form=Form(language=self._prepared.target.language, entry=rendered.entry, flags=rendered.flags),
            move=proposal.move,
            schedule=proposal.schedule,
            skill_ids=proposal.skill_ids,
        )

    def form_again(self) -> str:
        return "moves"


def schema(offer: Offer) -> str:
    """The JSON schema of an answer to ``offer``, as canonical JSON."""
    change = [
        {
            "type": "object",
            "properties": {
                DECISION: {"type": "string", "enum": [decision.key]},
                VALUE: {"type": _json_type(values), "enum": list(values)},
            },
            "required": [DECISION, VALUE],
            "additionalProperties": False,
        }
        for decision, _, values in offer.by_decision()
    ]
    answer = {
        "type": "object",
        "properties": {
            BECAUSE: {"type": "string", "maxLength": BECAUSE_CHARS_MAX},
            CHANGES: {"type": "array", "items": {"anyOf": change}, "minItems": 1, "maxItems": CHANGES_MAX},
        },
        "required": [BECAUSE, CHANGES],
        "additionalProperties": False,
    }
    return ids.canonical_json(answer).decode()


def choices(offer: Offer, kinds: Mapping[str, str]) -> str:
    """What is on offer, for the prompt: each decision with its value, its alternatives and what it trades."""
    lines = ["The kernel is written from a schedule. What may change, what is believed to pay most first:", ""]
    for decision, now, values in offer.by_decision():
        kind = kinds.get(decision.group, "any")
        pays = ", ".join(bound.value for bound in decision.pays_when)
        about = "; ".join(part for part in (kind, decision.why, f"pays when {pays}-bound" if pays else "") if part)
        lines.append(f"- {decision.key}: now {_shown(now)}, may be {', '.join(map(_shown, values))} ({about})")
    lines += [
        "",
        "Answer in this form, with one to three changes of different decisions, the one that matters most first:",
        "",
        EXAMPLE,
    ]
    return "\n".join(lines)


def _chosen(offer: Offer, changes: Any) -> tuple[Single, ...] | Unparsable:
    if not isinstance(changes, list) or not 1 <= len(changes) <= CHANGES_MAX:
        return _illegal(f"`{CHANGES}` is no list of 1 to {CHANGES_MAX} changes")
    found: dict[str, Single] = {}
    for change in changes:
        if not isinstance(change, dict) or set(change) != {DECISION, VALUE}:
            return _illegal(f"a change is not {{{DECISION}, {VALUE}}}")
        key, value = change[DECISION], change[VALUE]
        single = next(
            (s for s in offer.singles if s.decision.key == key and _same(s.after, value)),
            None,
        )
        if single is None:
            return _illegal(f"{_cut(key)} = {_cut(value)} is not on offer")
        if single.decision.key in found:
            return _illegal(f"{single.decision.key} is changed twice")
        found[single.decision.key] = single
    return tuple(found.values())


def _same(offered: Value, said: Any) -> bool:
    """Whether a value means the one on offer; numbers may come in quotes, true is not 1."""
    if isinstance(said, bool) or not isinstance(said, int | str):
        return False
    return str(offered) == str(said)


def _illegal(detail: str) -> Unparsable:
    return Unparsable(code="illegal_choice", detail=detail)


def _json_type(values: tuple[Value, ...]) -> str:
    return "integer" if all(isinstance(value, int) for value in values) else "string"


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, int) else f'"{value}"'


def _cut(said: Any) -> str:
    return repr(said)[:60]
