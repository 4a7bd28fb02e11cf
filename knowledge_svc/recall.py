"""Reading the skills that searches left behind, without running the service."""

from __future__ import annotations

from pathlib import Path

from knowledge_svc.learn import Learner
from knowledge_svc.settings import WITH_THE_RUN, Settings
from shared.adapters import open_store
from shared.errors import UserError
from shared.events import SkillDistilled, SkillStatus

_ORDER = (SkillStatus.SUPPORTED, SkillStatus.HYPOTHESIS, SkillStatus.RETRACTED)


async def skills(settings: Settings) -> tuple[SkillDistilled, ...]:
    """Every skill in the store that searches share: supported ones, hypotheses, retracted ones; largest gain first.

    Raises:
        UserError: skills are kept with each run, or the store cannot be read.
    """
    url = settings.skills_url
    if url == WITH_THE_RUN:
        raise UserError("skills are kept with each run", where=f"SKILLS_URL={url}", hint="unset it to share them")
    scheme, _, place = url.partition(":")
    if scheme == "sqlite" and not Path(place).exists():
        return ()  # no search has run yet; asking must not create anything
    async with open_store(url) as store:
        known = await Learner(store.documents, store.documents).skills()
    return tuple(sorted(known, key=lambda skill: (_ORDER.index(skill.status), skill.ratio_ppm, skill.skill_id)))
