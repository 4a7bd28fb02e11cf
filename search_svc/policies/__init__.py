"""Which node to expand next: one ask/tell interface, one small module per policy (pure).

``build(name, parameters)`` is the only door; the registry is below.
"""

from __future__ import annotations

from functools import lru_cache

from search_svc.policies.beam import Beam
from search_svc.policies.evolve import Evolve
from search_svc.policies.greedy import Greedy
from search_svc.policies.mcts import Mcts
from search_svc.policies.parameters import read
from search_svc.policies.policy import Ask, Policy
from search_svc.policies.uniform import Uniform
from shared.errors import UserError
from shared.events import Entry

REGISTRY: dict[str, type[Policy]] = {
    "greedy": Greedy,
    "beam": Beam,
    "mcts": Mcts,
    "evolve": Evolve,
    "uniform": Uniform,
}


@lru_cache(maxsize=64)
def build(name: str, parameters: tuple[Entry, ...] = ()) -> Policy:
    """The policy called ``name`` with its parameters.

    Raises:
        UserError: unknown policy, unknown parameter, or a value out of range.
    """
    if name not in REGISTRY:
        raise UserError(f"unknown policy `{name}`", where="policy", hint=f"one of: {', '.join(REGISTRY)}")
    return read(REGISTRY[name], name, parameters)


__all__ = ["REGISTRY", "Ask", "Policy", "build"]
