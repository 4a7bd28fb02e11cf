"""The schedule synthesizer: kernels from schedules, no model needed.

Proposals are rendered until enough new kernels are found; a rendering equal to a known kernel is passed over. What
was rendered once per operator is remembered, so that passing over costs a look-up.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from shared import ids
from shared.chips import Machine
from shared.errors import Poison
from shared.events import ExpansionRequested, KernelRef
from shared.operators import OperatorSpec
from shared.store import Blobs
from synthesizer_svc.answers import Unwritten, Written
from synthesizer_svc.gather import Seen, SeenKernel, SeenPrior
from synthesizer_svc.schedule.emit import Emitted
from synthesizer_svc.schedule.lowering import Lowered, Lowering, Target
from synthesizer_svc.schedule.proposal import Parent, Proposal, Situation
from synthesizer_svc.schedule.propose import propose
from synthesizer_svc.schedule.schedule import Schedule
from synthesizer_svc.schedule.transfer import seeded


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A lowered operator with the ids of the kernels already rendered from it."""

    lowered: Lowered
    target: Target
    kernel_ids: dict[Schedule, str] = field(default_factory=dict)

    def render(self, schedule: Schedule) -> tuple[str, Emitted]:
        """The kernel under ``schedule``, and its id."""
        rendered = self.lowered.render(schedule)
        kernel_id = self.kernel_ids[schedule] = _kernel_id(self.target.language, rendered)
        return kernel_id, rendered

    def kernel_id(self, schedule: Schedule) -> str:
        """The id of the kernel under ``schedule``; rendered once."""
        return self.kernel_ids.get(schedule) or self.render(schedule)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picked:
    proposal: Proposal
    rendered: Emitted
    kernel_id: str


class ScheduleWriter:
    """Writes kernels by choosing schedules; keeps ``operators_max`` lowered operators."""

    def __init__(self, blobs: Blobs, lowering: Lowering, *, renders_max: int, operators_max: int) -> None:
        self._blobs = blobs
        self._lowering = lowering
        self._renders_max = renders_max
        self._operators_max = operators_max
        self._prepared: OrderedDict[tuple[str, str, str, int], asyncio.Task[Prepared]] = OrderedDict()

    async def prepare(self, operator: OperatorSpec, language: str, machine: Machine, threads: int) -> Prepared:
        """The operator lowered for a target; once per target however many expansions ask.

        Raises:
            Unsupported: see ``Lowering.lower``; remembered too.
        """
        key = (operator.ref.source_hash, language, machine.name, threads)
        if key not in self._prepared:
            target = Target(language=language, machine=machine, threads=threads)
            self._prepared[key] = asyncio.create_task(self._lower(operator, target))
            while len(self._prepared) > self._operators_max:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(key)
        # Shielded: one cancelled expansion must not take the capture away from the others waiting for it.
        return await asyncio.shield(self._prepared[key])

    async def write(
        self, seen: Seen, prepared: Prepared, count: int, taken: frozenset[str]
    ) -> tuple[Written | Unwritten, ...]:
        """``count`` answers: from other chips' schedules, one each, then new kernels, then "exhausted" for what could
        not be filled. A schedule of another chip that comes to a kernel known here is a "duplicate".

        ``taken`` are kernel ids that other writers of this expansion have used.
        """
        situation = situation_of(seen, prepared)
        known = taken | frozenset(seen.expansion.known_kernel_ids)
        # Usually a few milliseconds, but a nearly exhausted neighbourhood renders hundreds of schedules.
        seeds = await asyncio.to_thread(_seeds, seen.priors[:count], prepared, known)
        known |= {seed.kernel_id for seed in seeds if isinstance(seed, _Picked)}
        answers: list[Written | Unwritten] = [
            await self._written(seen, prepared, seed) if isinstance(seed, _Picked) else seed for seed in seeds
        ]
        if len(answers) == count:
            return tuple(answers)
        picked, why = await asyncio.to_thread(self._pick, situation, prepared, count - len(answers), known)
        answers += [await self._written(seen, prepared, pick) for pick in picked]
        answers += [Unwritten(code="exhausted", detail=why)] * (count - len(answers))
        return tuple(answers)

    async def _lower(self, operator: OperatorSpec, target: Target) -> Prepared:
        return Prepared(lowered=await self._lowering.lower(operator, target), target=target)

    def _pick(
        self, situation: Situation, prepared: Prepared, count: int, known: frozenset[str]
    ) -> tuple[list[_Picked], str]:
        """Up to ``count`` new kernels, and why there are not more."""
        picked: list[_Picked] = []
        used = set(known)
        tried = renders = 0
        for proposal in propose(situation):
            if len(picked) == count:
                break
            tried += 1
            if prepared.kernel_ids.get(proposal.schedule) in used:
                continue
            if renders == self._renders_max:
                return picked, f"{renders} schedules rendered without finding enough new kernels"
            renders += 1
            kernel_id, rendered = prepared.render(proposal.schedule)
            if kernel_id not in used:
                used.add(kernel_id)
                picked.append(_Picked(proposal=proposal, rendered=rendered, kernel_id=kernel_id))
        return (
            picked,
            f"nothing left near {_names(situation)}: all {tried} proposals are kernels the search has already",
        )

    async def _written(self, seen: Seen, prepared: Prepared, pick: _Picked) -> Written:
        kernel = KernelRef(
            kernel_id=pick.kernel_id,
            language=prepared.target.language,
            source_hash=await self._blobs.put(pick.rendered.source.encode()),
            flags=pick.rendered.flags,
            entry=pick.rendered.entry,
            schedule_hash=await self._blobs.put(pick.proposal.schedule.to_json()),
        )
        return Written(kernel=kernel, move=pick.proposal.move, context=seen.context(skill_ids=pick.proposal.skill_ids))


def _seeds(priors: tuple[SeenPrior, ...], prepared: Prepared, known: frozenset[str]) -> list[_Picked | Unwritten]:
    """What each of ``priors`` comes to: a draft, or a kernel that is known already."""
    found: list[_Picked | Unwritten] = []
    used = set(known)
    for seen in priors:
        schedule = _read(seen.schedule_json, seen.prior.schedule_hash)
        proposal = seeded(prepared.lowered.space, schedule, seen.prior)
        kernel_id, rendered = prepared.render(proposal.schedule)
        if kernel_id in used:
            found.append(Unwritten(code="duplicate", detail=f"{proposal.move.rationale}; that kernel is known already"))
        else:
            used.add(kernel_id)
            found.append(_Picked(proposal=proposal, rendered=rendered, kernel_id=kernel_id))
    return found


def _kernel_id(language: str, rendered: Emitted) -> str:
    return ids.derive(language, ids.content_hash(rendered.source.encode()), *rendered.flags, rendered.entry)


def situation_of(seen: Seen, prepared: Prepared) -> Situation:
    """What schedules are proposed from."""
    expansion: ExpansionRequested = seen.expansion
    siblings = tuple(s for k in seen.siblings if (s := _schedule(k)) is not None)
    parents = tuple(p for k in seen.parents if (p := _parent(k)) is not None)
    return Situation(
        space=prepared.lowered.space,
        kinds=prepared.lowered.kinds,
        chip=expansion.chip,
        language=prepared.target.language,
        seed=expansion.seed,
        parents=parents,
        siblings=siblings,
        negative=tuple(s for k in seen.negative if (s := _schedule(k)) is not None),
        skills=seen.skills,
    )


def _parent(kernel: SeenKernel) -> Parent | None:
    """None for a kernel that no schedule wrote: there is no neighbourhood to move in."""
    schedule = _schedule(kernel)
    if schedule is None:
        return None
    return Parent(candidate_id=kernel.candidate_id, schedule=schedule, evaluation=kernel.evaluation)


def _schedule(kernel: SeenKernel) -> Schedule | None:
    return None if kernel.schedule_json is None else _read(kernel.schedule_json, kernel.kernel.schedule_hash)


def _read(schedule_json: bytes, name: str) -> Schedule:
    try:
        return Schedule.from_json(schedule_json)
    except (ValueError, AttributeError, TypeError) as error:
        raise Poison(f"schedule blob {name} is not a schedule: {error}") from error


def _names(situation: Situation) -> str:
    return " and ".join(p.candidate_id for p in situation.parents) or "the drafts"
