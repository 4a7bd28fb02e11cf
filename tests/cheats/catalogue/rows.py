"""Short forms for the catalogue's tables."""

from __future__ import annotations

from evaluator_svc.layers import Layer
from shared.events import Status
from tests.cheats.manifest import Cheat, Language, LookAlike, Naive

REFERENCE_FIRST, CANDIDATE_FIRST = Naive.REFERENCE_FIRST, Naive.CANDIDATE_FIRST


def cheat(
    language: Language,
    name: str,
    operator: str,
    status: Status | tuple[Status, ...],
    layer: Layer | tuple[Layer, ...],
    says: str = "",
    *,
    naive: Naive | None = None,
    threads: int = 1,
    clock: bool = False,
    gpu: bool = False,
    idle: bool = False,
) -> Cheat:
    return Cheat(
        language=language,
        name=name,
        operator=operator,
        status=status if isinstance(status, tuple) else (status,),
        layer=layer if isinstance(layer, tuple) else (layer,),
        says=says,
        naive=naive,
        threads=threads,
        needs_clock=clock,
        needs_gpu=gpu,
        idle=idle,
    )


def honest(
    language: Language, name: str, operator: str, like: str, *, threads: int = 1, gpu: bool = False
) -> LookAlike:
    return LookAlike(language=language, name=name, operator=operator, like=like, threads=threads, needs_gpu=gpu)
