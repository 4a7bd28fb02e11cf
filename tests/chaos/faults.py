"""What is done to a cluster, and when, as a seed says (pure)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from deploy.local.layout import EVALUATOR, SEARCH, SERVERS, SERVICES

CHIP = "simulated"
SEARCHES = 2
NAMES = (*SERVICES, *(f"{SEARCH}-{number}" for number in range(2, SEARCHES + 1)))
"""Of the services that are no evaluators."""


class Kind(StrEnum):
    """What happens to a process."""

    KILL = "kill -9"
    WIPE = "kill -9, data deleted"
    FREEZE = "SIGSTOP past its claims, SIGCONT"
    HANG = "kernel that hangs its worker"
    AWAY = "stopped for a while, a service killed meanwhile"
    SILENT = "SIGSTOP for a while: accepts, never answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``after_s``: pause since the cluster had recovered from the one before. ``beside`` is killed meanwhile."""

    kind: Kind
    victim: str
    after_s: float
    beside: str = ""


def evaluator(number: int) -> str:
    """The name of a worker, counted from 1."""
    return f"{EVALUATOR}-{CHIP}-{number}"


def plan(
    seed: int,
    *,
    workers: int,
    rounds: int = 1,
    kinds: Sequence[Kind] = tuple(Kind),
    pause_s: tuple[float, float] = (1.0, 5.0),
) -> tuple[Fault, ...]:
    """Every service in turn, then every server, each in an order and at moments that ``seed`` says; evaluators are hung
    first, while all servers are there, and one is frozen. Servers are also away and silent, and Redis loses its data.
    """
    chance = random.Random(seed)
    return tuple(fault for _ in range(rounds) for fault in _round(chance, workers, kinds, pause_s))


def _round(
    chance: random.Random, workers: int, kinds: Sequence[Kind], pause_s: tuple[float, float]
) -> tuple[Fault, ...]:

    def worker() -> str:
        return evaluator(chance.randint(1, workers))

    services = [(Kind.KILL, name) for name in (*NAMES, worker())]
    services.append((Kind.FREEZE, worker()))
    servers = [(kind, name) for name in SERVERS for kind in (Kind.KILL, Kind.AWAY, Kind.SILENT)]
    servers.append((Kind.WIPE, "redis"))
    for group in (services, servers):
        chance.shuffle(group)
    services.insert(0, (Kind.HANG, "some evaluator"))
    beside = [chance.choice((*NAMES, worker())) if kind is Kind.AWAY else "" for kind, _ in (*services, *servers)]
    return tuple(
        Fault(kind=kind, victim=victim, after_s=chance.uniform(*pause_s), beside=other)
        for (kind, victim), other in zip((*services, *servers), beside, strict=True)
        if kind in kinds
    )
