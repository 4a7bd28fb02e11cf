"""One seed: a run with faults beside the same searches undisturbed (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.faults import Kind
from tests.chaos.play import Run
from tests.chaos.system import HANG_LIMIT_S
from tests.chaos.wishes import Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Both runs had the wishes of ``seed``."""

    seed: int
    wishes: tuple[Wish, ...]
    disturbed: Run
    calm: Run

    @property
    def sequential(self) -> int:
        """Searches whose tree no order of arrival can change."""
        return sum(wish.sequential for wish in self.wishes)

    @property
    def different(self) -> list[str]:
        """Sequential searches whose tree is not that of the undisturbed run."""
        return [
            f"search {one.search_id} ({wish.policy}): its tree is another one{_where(one.shape, other.shape)}"
            for one, other, wish in zip(self.disturbed.audits, self.calm.audits, self.wishes, strict=True)
            if wish.sequential and one.shape != other.shape
        ]

    @property
    def late(self) -> list[str]:
        """Kernels that hung their workers for longer than the settings say."""
        return [
            f"a kernel that hangs was given up after {injury.ready_s:.0f} s, the limit is {HANG_LIMIT_S:.0f} s"
            for injury in self.disturbed.injuries
            if injury.fault.kind is Kind.HANG and injury.ready_s > HANG_LIMIT_S
        ]

    @property
    def problems(self) -> list[str]:
        """Everything that should not be."""
        return [*self.disturbed.problems, *self.calm.problems, *self.different, *self.late]


def _where(left: Sequence[object], right: Sequence[object]) -> str:
    for number, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return f", from {number} on: {one} and not {other}"
    return f": {len(left)} and not {len(right)} parts"
