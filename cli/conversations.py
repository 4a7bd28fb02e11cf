"""What models were asked and answered in a recorded search: candidates and rejected ones alike (pure).

The form of a conversation is told in ``synthesizer_svc/asking/record.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared import wire
from shared.errors import LogError, UserError
from shared.events import CandidateProduced, CandidateRejected
from shared.store import JournalEntry

Fact = CandidateProduced | CandidateRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, the messages that led to it, and what it was read as."""

    before: tuple[tuple[str, str], ...]
    """``(role, text)``, beginning with the system's."""
    text: str
    code: str = ""
    """``kernel``, ``build`` (it does not build) or that of a rejection; empty when nothing was made of it."""
    detail: str = ""
    kernel_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One exchange, and the fact that it led to. ``lines`` are the stored ones."""

    fact: Fact
    lines: tuple[Mapping[str, Any], ...]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """In order; what was asked and never answered is left out."""
        found: list[Answer] = []
        messages: list[tuple[str, str]] = []
        for line in self.lines:
            role = line["role"]
            if role == "assistant":
                found.append(Answer(before=tuple(messages), text=line["text"]))
            if role in ("system", "user", "assistant"):
                messages.append((role, line["text"]))
            if role == "outcome" and found:
                last = found[-1]
                found[-1] = Answer(
                    before=last.before,
                    text=last.text,
                    code=line["code"],
                    detail=line.get("detail", ""),
                    kernel_id=line.get("kernel_id", ""),
                )
        return tuple(found)


def facts(entries: Iterable[JournalEntry]) -> tuple[Fact, ...]:
    """What the synthesizer answered, in order of arrival, each once."""
    found: dict[str, Fact] = {}
    for entry in entries:
        event = wire.unpack(entry.event).event
        if isinstance(event, CandidateProduced | CandidateRejected):
            found.setdefault(event.candidate_id, event)
    return tuple(found.values())


def rejected(entries: Iterable[JournalEntry]) -> tuple[CandidateRejected, ...]:
    """What was rejected before evaluation and had cost a conversation."""
    return tuple(
        fact for fact in facts(entries) if isinstance(fact, CandidateRejected) and fact.context.conversation_hash
    )


def find(entries: Iterable[JournalEntry], prefix: str) -> Fact:
    """The one candidate, rejected or not, whose id begins with ``prefix``.

    Raises:
        UserError: none, or several.
    """
    matches = [fact for fact in facts(entries) if prefix and fact.candidate_id.startswith(prefix)]
    if len(matches) != 1:
        what = f"{len(matches)} candidates begin with `{prefix}`" if matches else f"no candidate `{prefix}`"
        raise UserError(what, where="explain", hint="`kernelevolve explain RUN` lists them")
    return matches[0]


def of(fact: Fact, blobs: Mapping[str, bytes]) -> Conversation | None:
    """The conversation that led to ``fact``; None where no model was asked.

    Raises:
        LogError: it is missing, or no conversation.
    """
    name = fact.context.conversation_hash
    if not name:
        return None
    try:
        lines = tuple(json.loads(line) for line in blobs[name].splitlines())
        known = all(isinstance(line.get("role"), str) for line in lines)
    except (KeyError, ValueError, AttributeError) as error:
        raise LogError(f"is missing or unreadable: {error!r}", where=f"conversation {name}") from error
    if not known:
        raise LogError("is no conversation", where=f"blob {name}")
    return Conversation(fact=fact, lines=lines)
