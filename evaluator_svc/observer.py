"""What a worker tells about itself: counted here, exported by whoever hooks in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from shared.events import Evaluation


class Happening(StrEnum):
    """Things that happen now and then and are worth a counter each."""

    TAKEN_IN = "taken_in"
    """A request was put into the pool's queue."""
    POISON = "poison"
    ADDED_AGAIN = "added_again"
    """The queue had lost it."""
    FORGOTTEN = "forgotten"
    """A partition with requests in flight went to another member."""
    REDELIVERED = "redelivered"
    """Claimed after another worker had lost it."""
    GIVEN_UP = "given_up"
    """Answered INFRASTRUCTURE because too many workers had lost it."""
    FENCED = "fenced"
    """A result was dropped: the claim was not held any more."""
    GIVEN_BACK = "given_back"
    """Unfinished at the end of the drain."""
    OVERDUE = "overdue"
    """Ended at the deadline."""
    STUCK = "stuck"
    """Could not be ended."""
    PROBED = "probed"
    """The worker tried itself."""
    UNSOUND = "unsound"
    """It missed a known cheat, refused a right kernel, or failed too often: it takes no work for a while."""
    WITHDRAWN = "withdrawn"
    """A verdict was not given, because its worker was found unsound meanwhile."""


class Observer(Protocol):
    """Called on the event loop; must not block or raise."""

    def happened(self, what: Happening) -> None: ...
    def claimed(self, wait_ns: int) -> None:
        """A request came into a slot ``wait_ns`` after it was published, by the publisher's clock."""
        ...

    def answered(self, evaluation: Evaluation, busy_ns: int) -> None:
        """A verdict is out; its slot was busy with it for ``busy_ns``. Stage times are in the evaluation."""
        ...


@dataclass(kw_only=True)
class Counts:
    """The observer that only counts."""

    happenings: Counter[Happening] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    memoised: int = 0
    busy_ns: int = 0
    wait_ns: int = 0

    def happened(self, what: Happening) -> None:
        self.happenings[what] += 1

    def claimed(self, wait_ns: int) -> None:
        self.wait_ns += wait_ns

    def answered(self, evaluation: Evaluation, busy_ns: int) -> None:
        self.statuses[evaluation.status.value] += 1
        self.memoised += evaluation.memoised
        self.busy_ns += busy_ns
