"""Who writes which index of an expansion: the schedule writer, a model by moves, or a model by rewriting (pure).

Before a model has been asked, the configured share holds. After that each index goes to the writer whose draw of *gain
per cost* is the largest (Thompson sampling): what paid is asked more, what is uncertain is still tried. All that a draw
depends on is in the request, so an expansion answered again is shared out the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from shared import ids
from shared.clock import SECOND_NS
from shared.events import ExpansionRequested, WriterRecord
from shared.usage import UNKNOWN
from shared.writers import SCHEDULE
from synthesizer_svc.prompts import Asking

if TYPE_CHECKING:
    import random

MOVES, REWRITE = Asking.MOVES.value, "rewrite"
"""Arms beside ``SCHEDULE``; rewriting is whole kernels and edits together."""
ATTEMPT = 1000
"""Thousandths in an attempt, as records count."""
PRIOR_GAIN_MICRO = 50_000
"""ln(1.05): what a gain is believed to be worth before there was one."""
EXPLORE = 0.06
"""Share of indices that go to any writer, whatever its record: gains of a search come and go."""
HOUR_S = 3600


def assign(
    expansion: ExpansionRequested, arms: tuple[str, ...], *, share_percent: int, machine_hour_micro: int
) -> tuple[str, ...]:
    """The arm of each index. ``share_percent`` is the models' share until results say otherwise; of 0 and 100 they
    never do. ``machine_hour_micro`` is what an hour costs: time and money are added by it.
    """
    models = tuple(arm for arm in arms if arm != SCHEDULE)
    if SCHEDULE not in arms:
        share_percent = 100
    if not models or share_percent == 0:
        return (SCHEDULE,) * expansion.count
    arms = models if share_percent == 100 else arms
    if len(arms) == 1:
        return arms * expansion.count
    if len(models) == 1 or not expansion.writers:
        return _configured(expansion, models, share_percent)
    records = {arm: _record(arm, expansion.writers) for arm in arms}
    return tuple(_drawn(expansion, records, machine_hour_micro, index) for index in range(expansion.count))


def _configured(expansion: ExpansionRequested, models: tuple[str, ...], share_percent: int) -> tuple[str, ...]:
    """The first indices, so many that the models' share holds on average over expansions; models take turns."""
    whole, part = divmod(expansion.count * share_percent, 100)
    stream = ids.stream(expansion.seed, "writer")
    if stream.randrange(100) < part:
        whole += 1
    first = stream.randrange(len(models))
    asked = tuple(models[(first + index) % len(models)] for index in range(whole))
    return asked + (SCHEDULE,) * (expansion.count - whole)


def _drawn(expansion: ExpansionRequested, records: dict[str, WriterRecord], hour_micro: int, index: int) -> str:
    stream = ids.stream(expansion.seed, "writer", index)
    if stream.random() < EXPLORE:
        return stream.choice(sorted(records))
    costs = _costs_micro(records, hour_micro)
    attempts = sum(record.attempts_milli for record in records.values())
    typical = max(1.0, sum(costs.values()) / max(1.0, attempts / ATTEMPT))
    return max(sorted(records), key=lambda arm: _worth(records[arm], costs[arm], typical, stream))


def _worth(record: WriterRecord, cost_micro: float, typical_micro: float, stream: random.Random) -> float:
    """A draw of the gain that one more attempt brings, for each unit of what it costs."""
    tried, gained = record.attempts_milli / ATTEMPT, record.gains_milli / ATTEMPT
    chance = stream.betavariate(1 + gained, 1 + max(0.0, tried - gained))
    gain = (PRIOR_GAIN_MICRO + record.gain_micro) / (1 + gained)
    return chance * gain / ((typical_micro + cost_micro) / (1 + tried))


def _costs_micro(records: Mapping[str, WriterRecord], hour_micro: int) -> dict[str, float]:
    """Time and money of each arm; time alone where the price of one is unknown, which would look free beside others."""
    priced = all(record.cost_micro != UNKNOWN for record in records.values())
    return {
        arm: record.time_ns / SECOND_NS / HOUR_S * hour_micro + (record.cost_micro if priced else 0)
        for arm, record in records.items()
    }


def _record(arm: str, records: Iterable[WriterRecord]) -> WriterRecord:
    """What ``arm`` has brought; of rewriting, both ways together."""
    names = (Asking.WHOLE.value, Asking.EDITS.value) if arm == REWRITE else (arm,)
    of = [record for record in records if record.writer in names]
    costs = [record.cost_micro for record in of]
    return WriterRecord(
        writer=arm,
        attempts_milli=sum(record.attempts_milli for record in of),
        gains_milli=sum(record.gains_milli for record in of),
        gain_micro=sum(record.gain_micro for record in of),
        time_ns=sum(record.time_ns for record in of),
        cost_micro=UNKNOWN if UNKNOWN in costs else sum(costs),
    )
