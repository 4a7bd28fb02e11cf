"""A recorded search whose candidates a model wrote, each with the conversation that led to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from search_svc.tree import Tree
from shared import ids, wire
from shared.events import (
    CandidateProduced,
    CandidateRejected,
    Context,
    Entry,
    Evaluation,
    EvaluationRequested,
    ExpansionRequested,
    Memory,
    Move,
    Usage,
)
from shared.writers import INSTEAD_OF
from tests.builders import a_kernel, a_search, enveloped, measured, produced, rejected
from tests.fakes.drive import Drive

USAGE = Usage(input_tokens=900, output_tokens=100, cached_tokens=300, cost_micro=1234, requests=2, latency_ns=10**9)


class Silent(Drive):
    """Answers nothing by itself."""

    def _answers(self, command):
        return []


@dataclass
class Asked:
    """Say what a model answered at each index, and what was measured of it."""

    drive: Silent = field(default_factory=Silent)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        search = a_search(candidates_per_expansion=8, expansions_in_flight=1, evaluations=40)
        self.drive.take(enveloped(search))
        self.request = next(self._commands(ExpansionRequested))

    @property
    def tree(self) -> Tree:
        assert self.drive.tree is not None
        return self.drive.tree

    def wrote(self, index: int, text: str, verdict: Evaluation, *, turns=(), question="Q", stood_in=False) -> str:
        """A candidate of ``text``, after ``turns`` (answer, code, complaint), with its verdict; returns its id."""
        kernel = a_kernel(text)
        made = replace(
            produced(self.request, index, kernel),
            context=self._context(question, [*turns, (text, "kernel", kernel.kernel_id)]),
            usage=USAGE,
            move=Move(name="rewrite", parameters=(Entry(name=INSTEAD_OF, value="budget: spent"),) if stood_in else ()),
        )
        self.blobs[kernel.source_hash] = text.encode()
        self.drive.take(enveloped(made))
        request = next(each for each in self._commands(EvaluationRequested) if each.candidate_id == made.candidate_id)
        self.drive.take(enveloped(measured(request, verdict)))
        return made.candidate_id

    def refused(self, index: int, text: str, code: str, *, question="Q") -> str:
        """An answer that was rejected before it was evaluated."""
        answered = [(text, code, "")] if text else []
        gone = replace(rejected(self.request, index, code), context=self._context(question, answered), usage=USAGE)
        self.drive.take(enveloped(gone))
        return gone.candidate_id

    def facts(self) -> tuple[CandidateProduced | CandidateRejected, ...]:
        events = (wire.unpack(entry.event).event for entry in self.drive.entries)
        return tuple(event for event in events if isinstance(event, CandidateProduced | CandidateRejected))

    def _context(self, question: str, answers) -> Context:
        lines = [{"role": "system", "text": "You write kernels.", "asking": "whole", "schema": ""}]
        for position, (text, code, last) in enumerate(answers):
            asked = question if position == 0 else answers[position - 1][2]
            lines.append({"role": "user", "text": asked, "request": "0" * 64})
            lines.append({"role": "assistant", "text": text, "endpoint": "large", "model": "m-1"})
            lines.append({"role": "outcome", "code": code, "detail": "", "kernel_id": last if code == "kernel" else ""})
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        name = ids.content_hash(data)
        self.blobs[name] = data
        return Context(
            memory=Memory.PARENT, conversation_hash=name, asking="whole", endpoint="large", model="m-1", prompt_hash=""
        )

    def _commands(self, kind):
        events = (wire.unpack(c).event for entry in self.drive.entries for c in entry.commands)
        return (event for event in events if isinstance(event, kind))
