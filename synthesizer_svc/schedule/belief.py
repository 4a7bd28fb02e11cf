"""What a move is believed to be worth before it is tried (pure).

A belief is a normal distribution over the log of the time ratio child/parent. Skills give it where this move was
measured; a weak prior from ``Decision.pays_when`` gives it elsewhere. Moves are ranked by one draw from each belief
(Thompson sampling), so that what is uncertain is still tried now and then and what is known to pay comes first.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from shared.events import PPM, Bound, SkillDistilled, SkillStatus
from synthesizer_svc.schedule.schedule import Decision

Z90 = 1.645
"""Half width of a 90 % interval in standard deviations: how ``SkillDistilled.low/high`` are stated."""
SIGMA_MIN = 0.005
"""No measurement here resolves less than half a percent, so no belief is sharper."""
ELSEWHERE_SHRINK = 0.5
"""A skill measured on another chip, language or bottleneck keeps half its effect …"""
ELSEWHERE_WIDEN = 2.0
"""… and twice its uncertainty."""

PRIOR_FITS = (-0.05, 0.10)
"""Mean and deviation of log(child/parent) for a decision made for the parent's bottleneck: mild hope, wide."""
PRIOR_ANY = (-0.02, 0.08)
PRIOR_MISFIT = (0.02, 0.06)
"""A decision for another bottleneck mostly does nothing; still tried, later."""
JUMP_COST = 0.04
"""Added to the mean, in log-ratio, per doubling of the distance to the parent's value: small steps first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """``mean`` and ``sigma`` of log(child time / parent time); negative means faster."""

    mean: float
    sigma: float
    skill: SkillDistilled | None = None

    def draw(self, stream: random.Random) -> float:
        """One sample of the expected log-speedup (positive is faster)."""
        return -stream.gauss(self.mean, self.sigma)


def prior(decision: Decision, bound: Bound, steps: int) -> Belief:
    """Belief without a skill: ``steps`` is the distance to the parent's value in the decision's order."""
    if not decision.pays_when or bound is Bound.UNKNOWN:
        mean, sigma = PRIOR_ANY
    else:
        mean, sigma = PRIOR_FITS if bound in decision.pays_when else PRIOR_MISFIT
    return Belief(mean=mean + JUMP_COST * math.log2(steps), sigma=sigma)


def from_skill(skill: SkillDistilled, *, here: bool) -> Belief:
    """Belief from a skill's posterior; ``here`` says it was measured on this chip, language and bottleneck."""
    mean = math.log(max(skill.ratio_ppm, 1) / PPM)
    sigma = (math.log(max(skill.high_ppm, 1)) - math.log(max(skill.low_ppm, 1))) / (2 * Z90)
    if not here:
        mean, sigma = mean * ELSEWHERE_SHRINK, sigma * ELSEWHERE_WIDEN
    return Belief(mean=mean, sigma=max(sigma, SIGMA_MIN), skill=skill)


def best_skill(
    skills: tuple[SkillDistilled, ...], name: str, *, chip: str, language: str, bound: Bound
) -> tuple[SkillDistilled, bool] | None:
    """The skill about move ``name`` that fits the context best, and whether it was measured in that very context."""
    about = [s for s in skills if s.move == name and s.status is not SkillStatus.RETRACTED]
    if not about:
        return None
    fits = {s.skill_id: (s.chip == chip, s.language == language, s.bound is bound) for s in about}
    best = max(about, key=lambda s: (sum(fits[s.skill_id]), s.status is SkillStatus.SUPPORTED, s.revision, s.skill_id))
    return best, all(fits[best.skill_id])
