"""What came of an entry, and whether that is what its manifest asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluator_svc.layers import Layer, caught_by
from shared.events import Evaluation, Status
from tests.cheats.manifest import Cheat, Entry, LookAlike, Plain, Refused
from tests.cheats.workplace import Workplace

IDLE_GAIN = 1.25
"""Two measurements on a busy machine differ by so much."""
IDLE_PAIRS = 3
"""A gain is there in every pair of measurements; what others do on the machine rarely favours the same side thrice."""
AT_ONCE = 2
"""One builds while another is timed, alone on its cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``problem`` is empty when all is as it should be."""

    entry: Entry
    status: str
    layer: Layer | None
    evidence: str
    problem: str
    seconds: float

    @property
    def undecided(self) -> bool:
        """The machine was too busy to tell by times, and the evaluator says so."""
        return self.status == Status.NOISY.value


def tried(
    place: Workplace, entries: Sequence[Entry], *, times: int = 1, done: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Evaluate ``entries`` in order, ``AT_ONCE`` at a time as a worker of the pool does; each up to ``times`` times
    while the machine is too busy. ``done`` is told of each.
    """

    async def one(entry: Entry, slots: asyncio.Semaphore) -> Outcome:
        async with slots:
            outcome = await _once(place, entry)
            for _ in range(times - 1):
                if outcome.undecided:
                    outcome = await _once(place, entry)
        done(outcome)
        return outcome

    async def every() -> list[Outcome]:
        slots = asyncio.Semaphore(AT_ONCE)
        return await asyncio.gather(*(one(entry, slots) for entry in entries))

    return place.loop.run(every())


async def _once(place: Workplace, entry: Entry) -> Outcome:
    begin = time.monotonic()
    if isinstance(entry, Refused):
        said = await place.refusal(entry.operator)
        status, layer, evidence = "refused" if said else "admitted", Layer.ADMISSION if said else None, said
        problem = "" if entry.says in said and said else f"expected a refusal that says `{entry.says}`"
    else:
        found = await place.evaluate(entry)
        status, layer, evidence = found.status.value, caught_by(found.evidence), _text(found)
        if isinstance(entry, Cheat) and _disarmed(entry, found):
            layer = Layer.FRESH
        problem = _problem(entry, found, layer, evidence)
        if isinstance(entry, Cheat) and entry.idle and found.status is Status.PASSED and problem:
            layer, problem = Layer.POISON, await _gained(place, entry, found)
    return Outcome(
        entry=entry,
        status=status,
        layer=layer,
        evidence=evidence,
        problem=problem,
        seconds=time.monotonic() - begin,
    )


def _disarmed(entry: Cheat, found: Evaluation) -> bool:
    """Whether a cheat on the clock that is otherwise right got the claim of its honest calls, and so nothing by it."""
    return entry.needs_clock and found.status is Status.PASSED and "claimed_for_fresh_values" in _text(found)


async def _gained(place: Workplace, entry: Cheat, found: Evaluation) -> str:
    """What is wrong with a cheat that passed because it never comes to cheating; empty when it gained nothing by it."""
    gains: list[float] = []
    for _ in range(IDLE_PAIRS):
        plain = await place.evaluate(Plain(language=entry.language, name="plain", operator=entry.operator))
        if Status.NOISY in (found.status, plain.status):
            return "undecided: the machine was too busy"
        if plain.status is not Status.PASSED:
            return "an honest kernel was rejected"
        if found.status is not Status.PASSED:
            return f"passed once and was then called {found.status.value}"
        gains.append(found.speedups[0].ratio_ppm / plain.speedups[0].ratio_ppm)
        if gains[-1] <= IDLE_GAIN:
            return ""
        found = await place.evaluate(entry)
    return f"missed: it passed, {min(gains):.2f} times as fast as it is in each of {len(gains)} pairs"


def _text(found: Evaluation) -> str:
    return "; ".join(f"{entry.name}: {entry.value}" for entry in found.evidence)


def _problem(entry: Cheat | LookAlike, found: Evaluation, layer: Layer | None, evidence: str) -> str:
    if found.status is Status.NOISY:
        return "undecided: the machine was too busy"
    if isinstance(entry, LookAlike):
        return "" if found.status is Status.PASSED else "an honest kernel was rejected"
    if found.status is Status.PASSED:
        return "" if _disarmed(entry, found) else "missed: it passed"
    if found.status not in entry.status:
        return f"expected status {' or '.join(status.value for status in entry.status)}"
    if layer not in entry.layer:
        return f"expected to be caught by {' or '.join(one.value for one in entry.layer)}"
    if entry.says not in evidence:
        return f"expected evidence that says `{entry.says}`"
    return ""
