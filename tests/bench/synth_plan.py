"""What the comparison of synthesizers runs: ways of writing, operators, seeds and limits (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Way(StrEnum):
    """How candidates are written."""

    SCHEDULES = "schedules"
    MOVES = "moves"
    WHOLE = "whole"
    HYBRID = "hybrid"

    @property
    def settings(self) -> Mapping[str, str]:
        """What makes a search write this way; the model itself is named apart."""
        return _SETTINGS[self]

    @property
    def asks(self) -> bool:
        return self is not Way.SCHEDULES


_SETTINGS: Mapping[Way, Mapping[str, str]] = {
    Way.SCHEDULES: {},
    Way.MOVES: {"MODEL_ASKING": "moves", "MODEL_SHARE_PERCENT": "100"},
    Way.WHOLE: {"MODEL_ASKING": "whole", "MODEL_SHARE_PERCENT": "100"},
    Way.HYBRID: {"MODEL_ASKING": "hybrid", "MODEL_SHARE_PERCENT": "50"},
}


class Equal(StrEnum):
    """What the searches of a comparison have in common."""

    EVALUATIONS = "evaluations"
    COST = "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``evaluations`` and ``seconds`` limit the searches of the two comparisons; 0 leaves that one out.

    With ``money``, in ``currency``, the second is at equal money: each search that asks a model may spend that, within
    ``seconds``. Schedules cost none, so they have the seconds alone. ``chip`` is the product's choice when empty.
    """

    operators: tuple[str, ...]
    seeds: tuple[int, ...]
    evaluations: int
    seconds: float
    ways: tuple[Way, ...] = tuple(Way)
    money: float = 0.0
    currency: str = ""
    chip: str = ""

    def cells(self) -> Iterator[Cell]:
        """Every search, those of one operator and seed together: what drifts on a machine meets all ways alike, and
        a comparison that is stopped has rows in both tables.
        """
        limits = ((Equal.EVALUATIONS, self.evaluations), (Equal.COST, self.seconds))
        for seed in self.seeds:
            for operator in self.operators:
                for equal, limit in limits:
                    for way in self.ways if limit else ():
                        yield Cell(equal=equal, operator=operator, seed=seed, way=way)

    def to_plain(self) -> dict[str, Any]:
        return {
            "operators": list(self.operators),
            "seeds": list(self.seeds),
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "ways": [way.value for way in self.ways],
            "money": self.money,
            "currency": self.currency,
            "chip": self.chip,
        }

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Plan:
        """Raises ``KeyError``, ``TypeError`` or ``ValueError`` for what is no plan."""
        return Plan(
            operators=tuple(map(str, plain["operators"])),
            seeds=tuple(map(int, plain["seeds"])),
            evaluations=int(plain["evaluations"]),
            seconds=float(plain["seconds"]),
            ways=tuple(map(Way, plain["ways"])),
            money=float(plain.get("money", 0.0)),
            currency=str(plain.get("currency", "")),
            chip=str(plain.get("chip", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One search of the comparison."""

    equal: Equal
    operator: str
    seed: int
    way: Way

    @property
    def name(self) -> str:
        """Unique in a plan; fits into a path and a URL."""
        return f"{self.equal}.{self.operator}.{self.seed}.{self.way}"
