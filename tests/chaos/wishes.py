"""The searches that a cluster is asked for (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.events import Budget

OPERATORS = Path(__file__).parents[2] / "examples" / "operators"
NAMES = ("softmax", "rms_norm")
POLICIES = ("greedy", "beam", "mcts", "evolve", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One search. A sequential one has one candidate on its way at a time, so that no order of arrival can matter."""

    request_id: str
    operator: str
    policy: str
    seed: int
    sequential: bool
    budget: Budget

    @property
    def source(self) -> str:
        return (OPERATORS / f"{self.operator}.py").read_text(encoding="utf-8")

    @property
    def depth(self) -> dict[str, int]:
        """How many candidates it may have on their way."""
        if self.sequential:
            return {"candidates_per_expansion": 1, "expansions_in_flight": 1}
        return {"candidates_per_expansion": 2, "expansions_in_flight": 3}


def wishes(count: int, evaluations: int, seed: int, operators: Sequence[str] = NAMES) -> tuple[Wish, ...]:
    """``count`` searches over all policies and ``operators``, every third one not sequential."""
    return tuple(
        Wish(
            request_id=f"chaos {seed} {number}",
            operator=operators[number % len(operators)],
            policy=POLICIES[(number + number // len(POLICIES)) % len(POLICIES)],
            seed=seed + number,
            sequential=number % 3 != 2,
            budget=Budget(evaluations=evaluations),
        )
        for number in range(count)
    )
