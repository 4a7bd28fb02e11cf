"""Every method of every service: who may call it, how long it may take, and whether it may be repeated.

Health and reflection are not here: they are open to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.rpc.tokens import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """``deadline_s`` of a unary call: what a client asks for by default and the most that a server allows. 0 on
    streams, which last as long as what they tell of.

    ``repeatable``: calling it twice is the same as calling it once, so a client repeats it when the server was
    unavailable. ``resumable``: a stream that the client takes up again where it was cut, so a draining server cuts it.
    """

    role: Role
    deadline_s: float = 30.0
    repeatable: bool = True
    resumable: bool = False


def _stream(role: Role, *, resumable: bool = False, repeatable: bool = True) -> Method:
    return Method(role=role, deadline_s=0.0, resumable=resumable, repeatable=repeatable)


_READ, _SUBMIT, _ADMIN = Method(role=Role.READ), Method(role=Role.SUBMIT), Method(role=Role.ADMIN)

METHODS = {
    "protos.search.v1.SearchService": {
        "Submit": _SUBMIT,  # by client_request_id, which our client always sends
        "Get": _READ,
        "List": _READ,
        "Watch": _stream(Role.READ, resumable=True),
        "Cancel": _SUBMIT,
        "Resume": _SUBMIT,
        "GetTree": _READ,
        "ExportLog": _stream(Role.READ),
        "ListPools": _READ,
    },
    "protos.operations.v1.OperationsService": {
        "ListDeadLetters": _READ,
        "GetDeadLetter": _READ,
        "RedriveDeadLetter": _ADMIN,  # consumers drop what they have handled, by its id
    },
    "protos.synthesizer.v1.SynthesizerService": {
        # A model writes for minutes, and repeating it costs tokens.
        "Generate": Method(role=Role.SUBMIT, deadline_s=900.0, repeatable=False),
    },
    "protos.evaluator.v1.EvaluatorService": {
        "Evaluate": _stream(Role.SUBMIT, repeatable=False),  # would measure twice
        "Build": Method(role=Role.SUBMIT, deadline_s=400.0),  # builds are kept by content, and wait for what is timed
        "Describe": _READ,
        "GetLedger": _READ,
    },
    "protos.knowledge.v1.KnowledgeService": {
        "Retrieve": _READ,
        "ListSkills": _READ,
        "ListDocuments": _READ,
        "GetDocument": _READ,
        "PutDocument": _ADMIN,
        "DeleteDocument": Method(role=Role.ADMIN, repeatable=False),  # the second one finds nothing
    },
}


def of(path: str) -> Method | None:
    """The method at ``path`` (``/package.Service/Method``), or None when the table does not know it."""
    service, _, name = path.removeprefix("/").rpartition("/")
    return METHODS.get(service, {}).get(name)
