"""The error hierarchy.

::

    KernelEvolveError
    ├── UserError            bad input from a person: one clear line (what, where, how to mend it), exit code 2
    │   ├── OperatorError    the operator file or directory
    │   ├── ChipError        unknown chip, or its toolchain is missing
    │   ├── NotFound         no search, document or letter of that name
    │   ├── AlreadyExists    the name stands for something else
    │   ├── LogError         a run directory or an exported log is missing, corrupt or of another version
    │   ├── Unauthenticated  the server does not know the caller
    │   └── NotAllowed       the caller's role is too low
    ├── Retryable            network, busy device, model 429/5xx: retried in place, capped and counted
    │   └── Unavailable      a dependency is gone: waited for as long as it takes, and readiness says so meanwhile
    ├── Poison               a record that cannot be decoded or breaks the schema: dead-lettered at once
    │   └── Stranded         the record is sound, what it belongs to is broken: dead-lettered, to be redriven
    ├── Fatal                our own bug or a dead store: do not commit, stop the service
    │   └── Conflict         another owner appended to the stream first: drop the state and read again
    └── ReplayDivergence     today's code decides otherwise than the log says; carries the position

A bad kernel is none of these: it is an ``Evaluation`` with a status.
"""

from __future__ import annotations


class KernelEvolveError(Exception):
    """Root of every error the project raises on purpose."""


class UserError(KernelEvolveError):
    """Bad input from a person. ``str(error)`` is the one line they read."""

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        line = f"{where}: {what}" if where else what
        super().__init__(f"{line} ({hint})" if hint else line)


class OperatorError(UserError):
    """The operator cannot be loaded, run or admitted."""


class ChipError(UserError):
    """The chip is unknown or its toolchain is missing."""


class NotFound(UserError):
    """Nothing of that name."""


class AlreadyExists(UserError):
    """The name is taken by something else."""


class LogError(UserError):
    """A run directory or exported log is missing or corrupt."""


class Unauthenticated(UserError):
    """The caller gave no token, or one that the server does not know."""


class NotAllowed(UserError):
    """The caller is known, and its role is too low."""


class Retryable(KernelEvolveError):
    """Worth another try after a pause."""


class Unavailable(Retryable):
    """A dependency (broker, store, cache, another service) cannot be reached, or not now. Nothing is known about
    whether the call took effect. Tries do not count: giving up would not bring it back.
    """


class Poison(KernelEvolveError):
    """The record itself is broken; a retry cannot help."""


class Stranded(Poison):
    """The record is sound, and the one thing that it belongs to is broken. However many there are, they say nothing
    about other records.
    """


class Fatal(KernelEvolveError):
    """The service cannot go on; its supervisor should restart it."""


class Conflict(Fatal):
    """``Journal.append`` expected another sequence number: somebody else owns the stream now."""


class ReplayDivergence(KernelEvolveError):
    """The recorded decision and the recomputed one differ at ``seq``."""

    def __init__(self, seq: int, recorded: object, computed: object, story: tuple[str, ...] = ()) -> None:
        self.seq, self.recorded, self.computed, self.story = seq, recorded, computed, story
        super().__init__(
            f"replay diverges at entry {seq}: recorded {recorded!r}, computed {computed!r}"
            + (f"; story: {' -> '.join(story)}" if story else "")
        )
