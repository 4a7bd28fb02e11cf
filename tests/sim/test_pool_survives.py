"""Seeded simulations of pool, sweeper and submissions: deaths, frozen workers, back ends that come back empty.

A failing seed reproduces itself: ``PoolWorld(seed=…, wishes=wishes(seed), calm=…).play()``.
"""

from __future__ import annotations

import pytest

from shared.errors import KernelEvolveError
from tests.builders import a_search
from tests.sim.pool_checks import every_pool_invariant
from tests.sim.pool_mutations import MUTATIONS
from tests.sim.pool_world import PoolWorld

SEEDS = 4
CHUNK = 2
MUTANT_SEEDS = 16


def wishes(seed: int):
    """A large search that asks for a lot at once, and two small ones."""
    large = a_search(search_id="large", evaluations=24, seed=seed, expansions_in_flight=12)
    small = [a_search(search_id=f"small-{n}", evaluations=6, seed=seed + n, expansions_in_flight=1) for n in range(2)]
    return (large, *small)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
@pytest.mark.parametrize("calm", [True, False], ids=["calm", "rough"])
def test_no_mishap_loses_doubles_or_starves_an_evaluation(calm, first):
    crashes = fenced = 0
    for seed in range(first, first + CHUNK):
        world = PoolWorld(seed=seed, wishes=wishes(seed), calm=calm).play()
        every_pool_invariant(world)
        crashes += world.crashes
        fenced += world.fenced
    assert fenced > 0, "no claim was ever lost"
    assert calm or crashes > CHUNK, "the world was too kind to prove anything"


def test_the_same_seed_gives_the_same_journal():
    first, second = (PoolWorld(seed=3, wishes=wishes(3)[1:]).play() for _ in range(2))
    assert first.bus.published == second.bus.published
    assert first.store.journal._streams == second.store.journal._streams


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_pool_with_one_step_wrong_is_caught(name):
    mutation = MUTATIONS[name]
    for seed in range(MUTANT_SEEDS):
        world = PoolWorld(seed=seed, wishes=wishes(seed), calm=mutation.calm, parts=mutation.parts)
        if caught := _complaint(world):
            assert mutation.expected in caught
            return
    pytest.fail(f"{MUTANT_SEEDS} simulations of a pool with `{name}` passed every check")


def _complaint(world: PoolWorld) -> str:
    """What the run or its checks say is wrong; empty when nothing."""
    try:
        every_pool_invariant(world.play())
    except (BaseExceptionGroup, AssertionError, KernelEvolveError) as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        return f"{type(first).__name__}: {first}"
    return ""
