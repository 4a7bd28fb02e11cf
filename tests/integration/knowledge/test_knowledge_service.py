"""The service on a bus: facts in, skills out, questions answered."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from knowledge_svc import recall, service
from knowledge_svc.settings import WITH_THE_RUN, Settings, from_env
from shared import envelopes, topics, wire
from shared.bus import Subscription
from shared.clock import ManualClock
from shared.errors import UserError
from shared.events import Bound, Event, SkillDistilled, SkillRetired, SkillStatus
from shared.knowledge import KnowledgeQuery
from shared.ports import Ports, open_ports
from shared.runtime import running
from shared.settings import PortSettings
from tests.unit.knowledge_svc.builders import candidate, completed

QUERY = KnowledgeQuery(chip="cpu-x86_64", language="cpp", operator_class="reduction", bound=Bound.MEMORY)
MEMORY = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")


def facts(search: str, speedups: Sequence[float] = (1.4, 1.4, 1.4)) -> list[Event]:
    """A search whose draft has one child per speedup over it."""
    children = [f for n, speedup in enumerate(speedups) for f in (
        candidate(f"{search}-{n}", (f"{search}-a",), search=search),
        completed(f"{search}-{n}", speedup, search=search),
    )]  # fmt: skip
    return [candidate(f"{search}-a", search=search), completed(f"{search}-a", 1.0, search=search), *children]


async def hear(
    ports: Ports, skills: Subscription, told: list[Event], last: Callable[[Event], bool]
) -> list[SkillDistilled | SkillRetired]:
    """Publish ``told`` and return what is published about skills, up to the first event for which ``last`` holds."""
    for n, fact in enumerate(told):
        wrapped = envelopes.envelope(fact, cause_id=fact.search_id, source="/test", clock=ports.clock, n=n)
        await ports.bus.publish(topics.FACTS, wire.encode(wrapped))
    heard = []
    while not heard or not last(heard[-1]):
        if delivery := await skills.poll(0.2):
            heard.append(wire.decode(delivery.record).event)
            await skills.commit(delivery)
    return heard


async def learn(settings: Settings, search: str, last: int) -> tuple[list[object], list[object]]:
    """Run the service over one search, up to revision ``last``. Returns the skills known before it and the events."""
    async with open_ports(MEMORY, ManualClock(1)) as ports:
        built, knowledge = service.build(ports, settings)
        async with running([built], ports), ports.bus.subscribe(topics.SKILLS, "test") as skills:
            before = await knowledge.skills(QUERY)
            heard = await hear(ports, skills, facts(search), lambda event: event.revision == last)
        return list(before), heard


def test_facts_become_skills_on_their_topic_and_outlive_the_run(tmp_path: Path):
    settings = Settings(skills_url=f"sqlite:{tmp_path / 'data' / 'skills.db'}")
    before, heard = asyncio.run(learn(settings, "s1", 3))
    assert before == []
    assert [skill.revision for skill in heard] == [1, 2, 3]
    before, heard = asyncio.run(learn(settings, "s2", 6))
    assert [skill.revision for skill in before] == [3]
    assert heard[-1].revision == 6


def test_a_skill_measured_false_is_retired_on_the_topic_and_no_longer_answers(tmp_path: Path):
    async def main():
        async with open_ports(MEMORY, ManualClock(1)) as ports:
            built, knowledge = service.build(ports, Settings(skills_url=WITH_THE_RUN))
            async with running([built], ports), ports.bus.subscribe(topics.SKILLS, "test") as skills:
                heard = await hear(ports, skills, facts("good", [1.1] * 5), lambda event: event.revision == 5)
                heard += await hear(
                    ports, skills, facts("bad", [0.85] * 30), lambda event: isinstance(event, SkillRetired)
                )
                while await knowledge.skills(QUERY):  # published first, remembered then
                    await asyncio.sleep(0)
                return heard

    heard = asyncio.run(main())
    assert heard[4].status is SkillStatus.SUPPORTED
    claim, retired = heard[-2:]
    assert (claim.skill_id, claim.status) == (retired.skill_id, SkillStatus.RETRACTED)
    assert retired.evidence_against


def test_a_skill_of_another_deployment_is_noticed_and_what_is_measured_here_counts_for_more():
    async def announced(*skills: SkillDistilled):
        async with open_ports(MEMORY, ManualClock(1)) as ports:
            built, knowledge = service.build(ports, Settings())
            async with running([built], ports):
                for n, skill in enumerate(skills):
                    wrapped = envelopes.envelope(skill, cause_id="there", source="/there", clock=ports.clock, n=n)
                    await ports.bus.publish(topics.SKILLS, wire.encode(wrapped))
                while not await knowledge.skills(QUERY):
                    await asyncio.sleep(0)
                noticed = await knowledge.skills(QUERY)
                async with ports.bus.subscribe(topics.SKILLS, "test") as told:
                    await hear(ports, told, facts("s1"), lambda event: event.revision == skills[0].revision + 3)
                while (after := await knowledge.skills(QUERY)) == noticed:
                    await asyncio.sleep(0)
                return noticed, after, [d async for d in ports.bus.history(topics.dead_letters(topics.SKILLS))]

    _, heard = asyncio.run(learn(Settings(), "there", 3))
    theirs = heard[-1]
    forged = replace(theirs, chip="abacus")
    noticed, (ours,), letters = asyncio.run(announced(forged, replace(theirs, low_ppm=-1), theirs))
    assert noticed == (theirs,)
    assert ours.revision > theirs.revision
    assert not set(ours.evidence_for) & set(theirs.evidence_for)
    assert len(letters) == 2


def test_skills_stay_with_the_run_when_asked_to(tmp_path: Path):
    settings = Settings(skills_url=WITH_THE_RUN)
    asyncio.run(learn(settings, "s1", 3))
    before, _ = asyncio.run(learn(settings, "s2", 3))
    assert before == []


def test_documents_of_the_users_folder_are_found_beside_the_corpus(tmp_path: Path):
    (tmp_path / "mine.md").write_text(
        '+++\nid = "guidance/zebra"\ntitle = "Zebra striping"\nconcern = "guidance"\nsummary = "S."\n+++\nWords.\n'
    )

    async def main():
        async with open_ports(MEMORY) as ports:
            _, knowledge = service.build(ports, Settings(user_folder=tmp_path))
            query = KnowledgeQuery(chip="cpu-x86_64", language="cpp", words="zebra stripes")
            passages = await knowledge.retrieve(query, 3)
            await knowledge.close()
            return passages

    assert asyncio.run(main())[0].document_id == "guidance/zebra"


def test_a_malformed_document_stops_the_service_with_one_clear_line(tmp_path: Path):
    (tmp_path / "mine.md").write_text("+++\nid = 3\n+++\nWords.\n")

    async def main():
        async with open_ports(MEMORY) as ports:
            built, _ = service.build(ports, Settings(folders=(tmp_path,)))
            async with running([built], ports):
                pass

    with pytest.raises(UserError, match="`id` must be a string"):
        asyncio.run(main())


def test_settings_come_from_the_environment():
    settings = from_env({"KNOWLEDGE_PATH": "/one:/two", "SKILLS_URL": "memory:"})
    assert settings.folders == (Path("/one"), Path("/two"))
    assert settings.skills_url == "memory:"
    assert from_env({}).skills_url.startswith("sqlite:")


def test_skills_are_recalled_without_the_service_and_asking_creates_nothing(tmp_path: Path):
    settings = Settings(skills_url=f"sqlite:{tmp_path / 'data' / 'skills.db'}")
    assert asyncio.run(recall.skills(settings)) == ()
    assert not (tmp_path / "data").exists()
    asyncio.run(learn(settings, "s1", 3))
    assert [skill.revision for skill in asyncio.run(recall.skills(settings))] == [3]
    with pytest.raises(UserError, match="kept with each run"):
        asyncio.run(recall.skills(Settings(skills_url=WITH_THE_RUN)))
