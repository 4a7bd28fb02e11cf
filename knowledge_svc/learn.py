"""Learning from facts, one at a time: the projection and the skills, kept in documents.

Two stores may be given. ``projection`` holds what is open in running searches and lives with the searches' journal;
``memory`` holds observations and skills and outlives every search. Each document is named by what caused it, so
hearing a fact twice writes the same documents again and changes nothing; that is the service's deduplication.
"""

from __future__ import annotations

from knowledge_svc import distil, observations, records
from knowledge_svc.observations import Observation, SkillContext, Trial
from shared.events import (
    CandidateProduced,
    EvaluationCompleted,
    Event,
    SearchCancelled,
    SearchFinished,
    SkillDistilled,
    SkillRetired,
    SkillStatus,
)
from shared.store import Documents

TRIALS = "knowledge.trials"
MEASURED = "knowledge.measured"
OBSERVATIONS = "knowledge.observations"
SKILLS = "knowledge.skills"


class Learner:
    """Turns facts into changes of skills. One instance at a time per ``projection``."""

    def __init__(self, projection: Documents, memory: Documents) -> None:
        self._projection, self._memory = projection, memory

    async def hear(self, fact: Event) -> tuple[SkillDistilled | SkillRetired, ...]:
        """Take ``fact`` in. Returns what it changes about a skill, to be published and then ``keep``-ed."""
        match fact:
            case CandidateProduced():
                if tried := observations.trial(fact):
                    await self._projection.put(TRIALS, _key(fact), records.to_json(tried))
            case EvaluationCompleted():
                return await self._completed(fact)
            case SearchFinished() | SearchCancelled():
                await self._forget(fact.search_id)
            case _:
                pass
        return ()

    async def keep(self, skill: SkillDistilled) -> None:
        """Remember ``skill`` as published. Called last, so that a crash before it publishes the same event again."""
        await self._memory.put(SKILLS, skill.skill_id, records.to_json(skill))

    async def notice(self, skill: SkillDistilled) -> bool:
        """Remember a ``skill`` that was announced, unless something is known of it here. Returns whether it was new.

        What was measured here always counts for more; and what is already known to be false teaches nobody anything.
        """
        if skill.status is SkillStatus.RETRACTED:
            return False
        return await self._memory.create(SKILLS, skill.skill_id, records.to_json(skill)) is None

    async def skills(self) -> tuple[SkillDistilled, ...]:
        """All skills ever published or noticed, in order of id."""
        return tuple([records.skill(value) async for _, value in self._memory.scan(SKILLS)])

    async def _completed(self, fact: EvaluationCompleted) -> tuple[SkillDistilled | SkillRetired, ...]:
        child = observations.measured(fact)
        if child is None:
            return ()
        await self._projection.put(MEASURED, _key(fact), records.to_json(child))
        tried = await self._trial(fact)
        if tried is None:
            return ()
        found = await self._projection.get(MEASURED, f"{fact.search_id}/{tried.parent_id}")
        if found is None:
            return ()
        parent = records.measured(found)
        seen = observations.observe(tried, child, parent)
        return () if seen is None else await self._revise(observations.context(tried, parent), seen)

    async def _revise(self, about: SkillContext, seen: Observation) -> tuple[SkillDistilled | SkillRetired, ...]:
        key = f"{about.skill_id}/{seen.search_id}/{seen.candidate_id}"
        await self._memory.put(OBSERVATIONS, key, records.to_json(seen))
        prefix = f"{about.skill_id}/"
        known = [records.observation(value) async for _, value in self._memory.scan(OBSERVATIONS, prefix)]
        stored = await self._memory.get(SKILLS, about.skill_id)
        before = records.skill(stored) if stored else None
        return changes(before, distil.distil(about, known, revision=before.revision if before else 1))

    async def _trial(self, fact: EvaluationCompleted) -> Trial | None:
        found = await self._projection.get(TRIALS, _key(fact))
        return records.trial(found) if found else None

    async def _forget(self, search_id: str) -> None:
        for collection in (TRIALS, MEASURED):
            for key in [key async for key, _ in self._projection.scan(collection, f"{search_id}/")]:
                await self._projection.delete(collection, key)


def changes(before: SkillDistilled | None, after: SkillDistilled) -> tuple[SkillDistilled | SkillRetired, ...]:
    """What to publish when ``before`` becomes ``after`` of the same revision: nothing, the skill, or it and its end.

    SkillRetired comes last, so that it is what a compacted topic keeps of a skill that was measured false.
    """
    if before == after:
        return ()
    revised = after if before is None else distil.revise(after, before.revision + 1)
    was_retracted = before is not None and before.status is SkillStatus.RETRACTED
    if was_retracted or after.status is not SkillStatus.RETRACTED:
        return (revised,)
    retired = SkillRetired(
        skill_id=revised.skill_id,
        reason=revised.statement,
        evidence_against=revised.evidence_against,
        revision=revised.revision,
    )
    return (revised, retired)


def _key(fact: CandidateProduced | EvaluationCompleted) -> str:
    return f"{fact.search_id}/{fact.candidate_id}"
