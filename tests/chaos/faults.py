"""What is done to a cluster, and when, as a seed says (pure)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from deploy.local.layout import EVALUATOR, SERVERS, SERVICES

CHIP = "simulated"


class Kind(StrEnum):
    """What happens to a process."""

    KILL = "kill -9"
    WIPE = "kill -9, data deleted"
    FREEZE = "SIGSTOP past its claims, SIGCONT"
    HANG = "kernel that hangs its worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``after_s``: pause since the cluster had recovered from the one before."""

    kind: Kind
    victim: str
    after_s: float


def evaluator(number: int) -> str:
    """The name of a worker, counted from 1."""
    return f"{EVALUATOR}-{CHIP}-{number}"


def plan(
    seed: int, *, workers: int, kinds: Sequence[Kind] = tuple(Kind), pause_s: tuple[float, float] = (1.0, 5.0)
) -> tuple[Fault, ...]:
    """Every service in turn, then every server, each in an order and at moments that ``seed`` says; an evaluator is
    frozen and another one hung somewhere in between, and Redis loses its data besides.
    """
    chance = random.Random(seed)
    pick = lambda: evaluator(chance.randint(1, workers))
    services = [(Kind.KILL, name) for name in (*SERVICES, pick())]
    services += [(Kind.FREEZE, pick()), (Kind.HANG, "some evaluator")]
    servers = [(Kind.KILL, name) for name in SERVERS] + [(Kind.WIPE, "redis")]
    for group in (services, servers):
        chance.shuffle(group)
    chosen = [(kind, victim) for kind, victim in (*services, *servers) if kind in kinds]
    return tuple(Fault(kind=kind, victim=victim, after_s=chance.uniform(*pause_s)) for kind, victim in chosen)
