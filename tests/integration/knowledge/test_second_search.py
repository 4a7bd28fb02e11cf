"""What one search learns, the next one of the same operator starts with."""

from __future__ import annotations

import asyncio
from pathlib import Path

from knowledge_svc import recall, service
from knowledge_svc.settings import Settings
from tests.fakes.closed_loop import search

EARLY = 7
"""Verdicts after which two searches are compared: the four drafts and their first children."""
SEEDS = (21, 22, 23)


def cost(choices):
    """One decision pays, the others cost; the prior knows neither."""
    ratio = 1.0
    ratio *= {1: 1.0, 2: 1.0, 4: 0.9, 8: 0.8}[choices["g0.unroll"]]
    ratio *= 1.0 if choices["g0.stores"] == "cached" else 0.85
    ratio *= {1: 1.0, 2: 1.5, 4: 2.2}[choices["g1.accumulators"]]
    ratio *= 0.9 if choices["g1.layout"] == "packed" else 1.0
    return round(ratio * 1_000_000)


def test_a_second_search_of_an_operator_tries_first_what_paid_in_the_first_and_is_sooner_at_its_best(tmp_path: Path):
    settings = Settings(skills_url=f"sqlite:{tmp_path / 'skills.db'}")

    async def main():
        one_by_one = {"expansions_in_flight": 1, "candidates_per_expansion": 1, "evaluations": 20}
        knowing = {**one_by_one, "knowledge": lambda ports: service.build(ports, settings)}
        await search(cost, **knowing, search_id="first", seed=1)
        skills = await recall.skills(settings)
        again = [await search(cost, **knowing, search_id=f"again-{seed}", seed=seed) for seed in SEEDS]
        naive = [await search(cost, **one_by_one, search_id=f"naive-{seed}", seed=seed) for seed in SEEDS]
        return skills, again, naive

    skills, again, naive = asyncio.run(main())
    pays = [skill.skill_id for skill in skills if skill.ratio_ppm < 1_000_000]
    assert pays
    for run in again:
        child = next(c for c in run.candidates if not c.move.name.startswith("draft:"))
        assert set(child.context.skill_ids) <= set(pays)
        assert child.context.skill_ids
    assert sum(run.best_after(EARLY) for run in again) > sum(run.best_after(EARLY) for run in naive)
