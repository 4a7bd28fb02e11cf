"""Seeded simulations of the search service: crashes at any port call, duplicates, reordering, two owners.

A failing seed reproduces itself: ``World(seed=…, searches=searches(seed)).play()``.
"""

from __future__ import annotations

import pytest

from shared.errors import KernelEvolveError
from shared.events import Basis, SearchPaused
from tests.builders import a_search
from tests.fakes.landscape import Clockless, Landscape, Moody
from tests.sim.checks import every_invariant
from tests.sim.mutations import MUTATIONS
from tests.sim.world import World

SEEDS = 300
CHUNK = 20
POLICIES = ("greedy", "beam", "mcts", "evolve")
MUTANT_SEEDS = 8


def searches(seed: int):
    """One search for most seeds, two side by side for every fifth."""
    names = ("search-1", "search-2") if seed % 5 == 0 else ("search-1",)
    return tuple(
        a_search(search_id=name, evaluations=5 + seed % 3, seed=seed, policy=POLICIES[(seed // 4 + position) % 4])
        for position, name in enumerate(names)
    )


def landscape(seed: int):
    """For every third seed a synthesizer that now and then cannot go on until somebody acts; for some of the others a
    chip on which costs are counted or modelled instead of timed.
    """
    if seed % 3 == 0:
        return Moody()
    return {1: Clockless(basis=Basis.COUNTED), 2: Clockless(basis=Basis.MODELLED)}.get(seed % 7, Landscape())


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_crash_duplicate_or_second_owner_loses_or_doubles_anything(first):
    crashes = conflicts = pauses = 0
    for seed in range(first, first + CHUNK):
        world = World(seed=seed, searches=searches(seed), crash_rate=0.04, landscape=landscape(seed)).play()
        every_invariant(world)
        pauses += sum(isinstance(envelope.event, SearchPaused) for envelope in world.bus.published)
        crashes += world.faults.crashes
        conflicts += world.journal.conflicts
    assert crashes > CHUNK, "the world was too kind to prove anything"
    assert conflicts > 0, "no two owners ever met"
    assert pauses > 0, "no search ever paused"


def test_the_same_seed_gives_the_same_journal():
    first, second = (World(seed=3, searches=searches(3), crash_rate=0.04).play() for _ in range(2))
    assert first.bus.published == second.bus.published
    assert first.store.journal._streams == second.store.journal._streams


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_recipe_with_one_step_wrong_is_caught(name):
    for seed in range(MUTANT_SEEDS):
        if caught := _complaint(
            World(
                seed=seed,
                searches=searches(seed),
                crash_rate=0.04,
                recipe=MUTATIONS[name].recipe,
                landscape=MUTATIONS[name].landscape,
            )
        ):
            assert MUTATIONS[name].expected in caught
            return
    pytest.fail(f"{MUTANT_SEEDS} simulations of a recipe with `{name}` passed every check")


def _complaint(world: World) -> str:
    """What the run or its checks say is wrong; empty when nothing."""
    try:
        every_invariant(world.play())
    except (BaseExceptionGroup, AssertionError, KernelEvolveError) as error:
        return _first(error)
    return ""


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
