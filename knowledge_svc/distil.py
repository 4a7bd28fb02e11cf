"""Skills as tested claims: *in this context, this move multiplies time by r* (pure).

Model. Each pair of kernels (parent, child) gives one measured log-ratio y with standard error s. The move's effect
differs from pair to pair with variance t² (random effects), and its mean m has the prior N(0, PRIOR_SIGMA²):

    y ~ N(m, s² + t²),   m ~ N(0, PRIOR_SIGMA²)   =>   m | y is normal (conjugate prior with known variance)

t² is the DerSimonian–Laird moment estimate (Controlled Clinical Trials 7, 1986), not below SPREAD_MIN². The result
depends on the set of observations alone, never on the order they arrived in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from knowledge_svc.observations import Observation, SkillContext
from shared.events import PPM, Bound, SkillDistilled, SkillStatus, Status

PRIOR_SIGMA = 0.2
"""Before any evidence a move is believed to change time by less than about 20 % either way."""
SIGMA_MIN = 0.02
"""Floor of a pair's standard error: two builds of equal code differ by 2–3 % from layout alone (A/A runs on CPUs),
which the bootstrap interval within one build cannot see."""
SPREAD_MIN = 0.05
"""Floor of t: the same move on another shape differs by at least some per cent, seen in the evidence yet or not."""
Z90 = 1.644854
"""Half width of a 90 % normal interval in standard deviations."""
PAIRS_MIN_ACROSS, SEARCHES_MIN = 3, 2
"""Enough evidence: three pairs from two searches; two pairs can agree by chance in sign one time in two."""
PAIRS_MIN_WITHIN = 5
"""…or five pairs of one search, which share an operator and a moment: all of one sign by chance 1 time in 16."""
FAILED_SHARE_MAX = 0.5
"""A move that breaks the kernel more often than not is no skill, whatever the survivors gain."""
WORTHLESS_GAIN = 0.01
"""Measured false: even the favourable end of the interval gains less than 1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """Normal belief about the mean log-ratio of time."""

    mean: float
    sigma: float

    @property
    def low(self) -> float:
        return self.mean - Z90 * self.sigma

    @property
    def high(self) -> float:
        return self.mean + Z90 * self.sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """All measurements of one pair of kernels, pooled: repeating a measurement is no independent evidence."""

    log_ratio: float
    variance: float
    search_id: str


def distil(about: SkillContext, observations: Sequence[Observation], revision: int = 1) -> SkillDistilled:
    """The claim that ``observations`` of ``about`` amount to, of this ``revision``."""
    ordered = sorted(observations, key=lambda o: (o.search_id, o.candidate_id))
    passed = [o for o in ordered if o.status is Status.PASSED]
    failed = [o for o in ordered if o.status is not Status.PASSED]
    pairs = _pool(passed)
    belief = posterior([(p.log_ratio, p.variance) for p in pairs])
    status = _status(belief, pairs, failures=_kernels(failed), trials=_kernels(ordered))
    return SkillDistilled(
        skill_id=about.skill_id,
        move=about.move,
        operator_class=about.operator_class,
        chip=about.chip,
        language=about.language,
        bound=about.bound,
        status=status,
        ratio_ppm=_ppm(belief.mean),
        low_ppm=_ppm(belief.low),
        high_ppm=_ppm(belief.high),
        evidence_for=tuple(o.candidate_id for o in passed if o.log_ratio < 0),
        evidence_against=tuple(o.candidate_id for o in ordered if o.log_ratio >= 0),
        revision=revision,
        statement=_statement(about, belief, status, len(pairs), passed, failed),
    )


def revise(skill: SkillDistilled, revision: int) -> SkillDistilled:
    """``skill`` under another revision number."""
    return replace(skill, revision=revision)


def posterior(measured: Sequence[tuple[float, float]]) -> Posterior:
    """Belief about the mean log-ratio after ``measured`` (log-ratio, variance); the prior when there is none."""
    spread = _spread_squared(measured)
    precision = math.fsum([PRIOR_SIGMA**-2, *(1 / (variance + spread) for _, variance in measured)])
    mean = math.fsum(y / (variance + spread) for y, variance in measured) / precision
    return Posterior(mean=mean, sigma=precision**-0.5)


def _spread_squared(measured: Sequence[tuple[float, float]]) -> float:
    """Variance t² of the effect between pairs: DerSimonian–Laird, with its floor."""
    floor = SPREAD_MIN**2
    if len(measured) < 2:
        return floor
    weights = [1 / variance for _, variance in measured]
    total = math.fsum(weights)
    mean = math.fsum(w * y for w, (y, _) in zip(weights, measured, strict=True)) / total
    q = math.fsum(w * (y - mean) ** 2 for w, (y, _) in zip(weights, measured, strict=True))
    scale = total - math.fsum(w * w for w in weights) / total
    return max(floor, (q - (len(measured) - 1)) / scale)


def _pool(passed: Sequence[Observation]) -> list[_Pair]:
    """One entry per pair of kernels, by inverse variance, charged to the first search that saw it."""
    groups: dict[tuple[str, str], list[Observation]] = {}
    for seen in passed:
        groups.setdefault((seen.parent_kernel_id, seen.kernel_id), []).append(seen)
    pairs = []
    for key in sorted(groups):
        weights = [max(seen.sigma, 1e-6) ** -2 for seen in groups[key]]
        total = math.fsum(weights)
        mean = math.fsum(w * seen.log_ratio for w, seen in zip(weights, groups[key], strict=True)) / total
        search_id = min(seen.search_id for seen in groups[key])
        pairs.append(_Pair(log_ratio=mean, variance=max(1 / total, SIGMA_MIN**2), search_id=search_id))
    return pairs


def _kernels(observations: Sequence[Observation]) -> int:
    return len({(seen.parent_kernel_id, seen.kernel_id) for seen in observations})


def _status(belief: Posterior, pairs: Sequence[_Pair], *, failures: int, trials: int) -> SkillStatus:
    mostly_fails = failures > FAILED_SHARE_MAX * trials
    if mostly_fails and trials >= PAIRS_MIN_WITHIN:
        return SkillStatus.RETRACTED
    searches = len({pair.search_id for pair in pairs})
    enough = len(pairs) >= PAIRS_MIN_WITHIN or (len(pairs) >= PAIRS_MIN_ACROSS and searches >= SEARCHES_MIN)
    if enough and belief.low > -WORTHLESS_GAIN:
        return SkillStatus.RETRACTED
    if enough and belief.high < 0 and not mostly_fails:
        return SkillStatus.SUPPORTED
    return SkillStatus.HYPOTHESIS


def _ppm(log_ratio: float) -> int:
    return round(math.exp(log_ratio) * PPM)


def _statement(
    about: SkillContext,
    belief: Posterior,
    status: SkillStatus,
    pairs: int,
    passed: Sequence[Observation],
    failed: Sequence[Observation],
) -> str:
    where = f"{about.language} {about.operator_class or 'operators'} on {about.chip}"
    if about.bound is not Bound.UNKNOWN:
        where += f", {about.bound.value}-bound"
    numbers = f"{math.exp(belief.mean):.3f} (90 % interval {math.exp(belief.low):.3f} to {math.exp(belief.high):.3f})"
    evidence = "1 pair" if pairs == 1 else f"{pairs} pairs"
    units = sorted({seen.unit for seen in passed if seen.unit})
    what = f"counted {' and '.join(units)}" if units else "time"
    text = f"{status.value}: in {where}, `{about.move}` multiplies {what} by {numbers}, from {evidence} of kernels"
    if failed:
        kinds = sorted({seen.status.value for seen in failed})
        text += f"; {len(failed)} attempt{'' if len(failed) == 1 else 's'} failed ({', '.join(kinds)})"
    return text
