"""Learning from facts one by one: what is published, and that hearing twice or starting anew changes nothing."""

import asyncio
from pathlib import Path

from knowledge_svc.learn import Learner
from knowledge_svc.retrieve import rank_skills
from shared.events import Event, SearchFinished, SkillDistilled, SkillRetired, SkillStatus
from shared.knowledge import KnowledgeQuery
from shared.store.memory import MemoryStore
from shared.store.sqlite import SqliteStore
from tests.unit.knowledge_svc.builders import MOVE, candidate, completed

QUERY = KnowledgeQuery(chip="cpu-x86_64", language="cpp", operator_class="reduction")


def search(name: str, ratios: list[float | None], first: int = 0) -> list[Event]:
    """A search whose first draft has one child per ratio (child time over parent time; None is left unmeasured)."""
    draft = f"{name}-draft"
    facts: list[Event] = [candidate(draft, search=name, move="draft:default"), completed(draft, 1.0, search=name)]
    for n, ratio in enumerate(ratios, first):
        facts.append(candidate(f"{name}-{n}", (draft,), search=name))
        if ratio is not None:
            facts.append(completed(f"{name}-{n}", 1 / ratio, search=name))
    return facts


async def hear(learner: Learner, facts: list[Event]) -> list[SkillDistilled | SkillRetired]:
    heard = []
    for fact in facts:
        for change in await learner.hear(fact):
            heard.append(change)
            if isinstance(change, SkillDistilled):
                await learner.keep(change)
    return heard


def test_each_piece_of_evidence_revises_the_skill():
    async def main():
        store = MemoryStore()
        changes = await hear(Learner(store.documents, store.documents), search("s1", [0.7] * 5))
        assert [c.revision for c in changes] == [1, 2, 3, 4, 5]
        assert {c.skill_id for c in changes} == {changes[0].skill_id}
        assert changes[-1].status is SkillStatus.SUPPORTED
        assert changes[-1].evidence_for == tuple(f"s1-{n}" for n in range(5))

    asyncio.run(main())


def test_hearing_a_fact_twice_changes_nothing():
    async def main():
        store = MemoryStore()
        learner = Learner(store.documents, store.documents)
        facts = search("s1", [0.7, 0.8])
        await hear(learner, facts)
        assert await hear(learner, facts) == []

    asyncio.run(main())


def test_a_change_that_was_not_kept_is_published_again_and_is_the_same():
    async def main():
        store = MemoryStore()
        learner = Learner(store.documents, store.documents)
        *before, last = search("s1", [0.7, 0.8])
        await hear(learner, before)
        published = await learner.hear(last)  # the process dies here
        assert published
        assert await Learner(store.documents, store.documents).hear(last) == published

    asyncio.run(main())


def test_refuting_a_supported_skill_retires_it_and_hides_it_from_questions():
    async def main():
        store = MemoryStore()
        learner = Learner(store.documents, store.documents)
        await hear(learner, search("s1", [0.9] * 5))
        assert [s.status for s in rank_skills(QUERY, await learner.skills())] == [SkillStatus.SUPPORTED]
        changes = await hear(learner, search("s2", [1.15] * 60))
        retired = [c for c in changes if isinstance(c, SkillRetired)]
        assert len(retired) == 1
        claim = changes[changes.index(retired[0]) - 1]
        assert claim.status is SkillStatus.RETRACTED
        assert retired[0].evidence_against
        assert rank_skills(QUERY, await learner.skills()) == ()

    asyncio.run(main())


def test_an_open_search_goes_on_after_a_restart(tmp_path: Path):
    async def main():
        facts = search("s1", [0.7] * 5)
        for fact in facts:  # a new process for every fact
            async with SqliteStore(tmp_path / "run.db") as store:
                await hear(Learner(store.documents, store.documents), [fact])
        async with SqliteStore(tmp_path / "run.db") as store:
            (skill,) = await Learner(store.documents, store.documents).skills()
        assert (skill.status, skill.revision) == (SkillStatus.SUPPORTED, 5)

    asyncio.run(main())


def test_a_second_search_starts_with_what_the_first_one_learnt(tmp_path: Path):
    async def main():
        for name, ratios in (("s1", [0.7, 0.72]), ("s2", [0.71])):
            async with MemoryStore() as run, SqliteStore(tmp_path / "skills.db") as memory:
                learner = Learner(run.documents, memory.documents)
                before = await learner.skills()
                await hear(learner, search(name, ratios))
        assert [s.move for s in before] == [MOVE]
        async with SqliteStore(tmp_path / "skills.db") as memory:
            (skill,) = await Learner(memory.documents, memory.documents).skills()
        assert skill.status is SkillStatus.SUPPORTED

    asyncio.run(main())


def test_a_finished_search_leaves_nothing_open_behind():
    async def main():
        run, memory = MemoryStore(), MemoryStore()
        learner = Learner(run.documents, memory.documents)
        await hear(learner, search("s1", [0.7, None]))
        await hear(learner, [SearchFinished(search_id="s1", outcome="improved", reason="evaluations", evaluations=3)])
        left = [key for c in ("knowledge.trials", "knowledge.measured") async for key, _ in run.documents.scan(c)]
        assert left == []

    asyncio.run(main())


def test_skills_measured_in_the_very_context_come_first_and_supported_before_hypotheses():
    async def main():
        store = MemoryStore()
        learner = Learner(store.documents, store.documents)
        moves = {"reduction:a=1": [0.9] * 5, "reduction:b=1": [0.7] * 5, "reduction:c=1": [0.5]}
        for search_id, (move, ratios) in enumerate(moves.items()):
            facts = search(f"s{search_id}", ratios)
            for n, fact in enumerate(facts):
                if n >= 2 and not n % 2:
                    facts[n] = candidate(fact.candidate_id, fact.parent_ids, search=fact.search_id, move=move)
            await hear(learner, facts)
        assert [s.move for s in rank_skills(QUERY, await learner.skills())] == [
            "reduction:b=1",
            "reduction:a=1",
            "reduction:c=1",
        ]
        elsewhere = KnowledgeQuery(chip="riscv-rvv", language="c", operator_class="contraction")
        assert rank_skills(elsewhere, await learner.skills()) == ()

    asyncio.run(main())
