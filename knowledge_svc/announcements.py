"""Whether a claim that somebody announced makes sense (pure)."""

from __future__ import annotations

from knowledge_svc.observations import SkillContext
from shared.errors import Poison
from shared.events import SkillDistilled


def check(skill: SkillDistilled) -> None:
    """Raises ``Poison``, naming what is wrong, for a claim that could not have been distilled from measurements."""
    about = SkillContext(
        move=skill.move,
        operator_class=skill.operator_class,
        chip=skill.chip,
        language=skill.language,
        bound=skill.bound,
    )
    if skill.skill_id != about.skill_id:
        raise Poison(f"skill {skill.skill_id}: its move, operator class, chip, language and bound are of another one")
    if not 0 < skill.low_ppm <= skill.ratio_ppm <= skill.high_ppm:
        interval = f"{skill.low_ppm} to {skill.high_ppm} ppm"
        raise Poison(
            f"skill {skill.skill_id}: its ratio of {skill.ratio_ppm} ppm is not positive and within {interval}"
        )
    if skill.revision < 1:
        raise Poison(f"skill {skill.skill_id}: its revision is {skill.revision}")
