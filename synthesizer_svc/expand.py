"""One expansion, answered: which writer writes which index, and the facts that result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shared import chips, ids
from shared.clock import Clock
from shared.errors import ChipError, Poison
from shared.events import CandidateProduced, CandidateRejected, ExpansionFailed, ExpansionRequested, Usage
from shared.knowledge import Knowledge
from shared.machine import Processor
from shared.store import Blobs
from synthesizer_svc import answers
from synthesizer_svc.answers import Unwritten, Written
from synthesizer_svc.gather import Gatherer, Seen, load_operator
from synthesizer_svc.model import Model
from synthesizer_svc.rewrite import ModelWriter
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.lowering import Lowering
from synthesizer_svc.schedule.synthesize import Prepared, ScheduleWriter
from synthesizer_svc.settings import Settings

Fact = CandidateProduced | CandidateRejected | ExpansionFailed


class Expander:
    """Turns a request into its facts: ``count`` of them, or one ExpansionFailed."""

    def __init__(
        self,
        *,
        blobs: Blobs,
        knowledge: Knowledge,
        lowerings: Mapping[str, Lowering],
        model: Model | None,
        processor: Processor,
        clock: Clock,
        settings: Settings,
    ) -> None:
        """``lowerings`` maps a language to what plans operators for it."""
        limits = settings.limits
        self._blobs, self._clock, self._processor = blobs, clock, processor
        self._model_share_percent = settings.model.share_percent
        self._gatherer = Gatherer(blobs, knowledge, limits.documents_max)
        self._schedules = {
            language: ScheduleWriter(
                blobs, lowering, renders_max=limits.renders_max, operators_max=limits.operators_max
            )
            for language, lowering in lowerings.items()
        }
        self._model = ModelWriter(model, blobs, clock, settings.model) if model else None

    async def expand(self, expansion: ExpansionRequested) -> tuple[Fact, ...]:
        """The facts that answer ``expansion``.

        Raises:
            Poison: it refers to blobs that do not exist, or asks for nothing.
        """
        if expansion.count < 1 or not expansion.languages:
            raise Poison(f"expansion {expansion.expansion_id} asks for no candidate or no language")
        operator = await load_operator(self._blobs, expansion.operator)
        try:
            chip = chips.load(expansion.chip)
            machine = chips.machine_of(chip, self._processor.flags)
        except ChipError as error:
            return (self._failed(expansion, "unsupported_chip", str(error)),)
        language = next((name for name in expansion.languages if name in self._schedules), expansion.languages[0])
        prepared: Prepared | None = None
        code, refusal = "unsupported_language", f"no schedule emitter for {', '.join(expansion.languages)}"
        if language in self._schedules:
            try:
                writer = self._schedules[language]
                prepared = await writer.prepare(operator, language, machine, expansion.threads)
            except Unsupported as error:
                code, refusal = "unsupported_operator", f"{error.node}: {error.why}"
        if prepared is None and self._model is None:
            return (self._failed(expansion, code, refusal),)
        operator_class = prepared.lowered.operator_class if prepared else ""
        began = self._clock.monotonic_ns()
        seen = await self._gatherer.gather(expansion, operator, chip, machine, operator_class)
        gathered_ns = self._clock.monotonic_ns() - began
        written = await self._write(seen, language, prepared, gathered_ns)
        at_ns = self._clock.now_ns()
        return tuple(answers.event(expansion, index, answer, at_ns) for index, answer in enumerate(written))

    async def _write(
        self, seen: Seen, language: str, prepared: Prepared | None, gathered_ns: int
    ) -> list[Written | Unwritten]:
        """One answer per index. The model goes first: schedules can step around its kernels, not it around theirs.

        What schedules cost is this project's own time, gathering included and capturing once per operator excluded;
        it is shared out over their answers. A model's answer carries the time of its call.
        """
        expansion = seen.expansion
        asked = model_indices(expansion, self._model_share_percent) if self._model else ()
        if prepared is None:
            asked = tuple(range(expansion.count))
        found: dict[int, Written | Unwritten] = {}
        if self._model and asked:
            found.update(zip(asked, await self._model.write(seen, language, asked, frozenset()), strict=True))
        rest = tuple(index for index in range(expansion.count) if index not in found)
        if rest:
            assert prepared is not None
            taken = frozenset(a.kernel.kernel_id for a in found.values() if isinstance(a, Written))
            began = self._clock.monotonic_ns()
            written = await self._schedules[language].write(seen, prepared, len(rest), taken)
            usage = Usage(latency_ns=(gathered_ns + self._clock.monotonic_ns() - began) // len(rest))
            found.update((index, replace(answer, usage=usage)) for index, answer in zip(rest, written, strict=True))
        return [found[index] for index in range(expansion.count)]

    def _failed(self, expansion: ExpansionRequested, code: str, detail: str) -> ExpansionFailed:
        return ExpansionFailed(
            search_id=expansion.search_id,
            expansion_id=expansion.expansion_id,
            code=code,
            detail=detail,
            at_ns=self._clock.now_ns(),
        )


def model_indices(expansion: ExpansionRequested, share_percent: int) -> tuple[int, ...]:
    """The first indices of ``expansion``, so many that the model's share holds on average over expansions."""
    whole, part = divmod(expansion.count * share_percent, 100)
    if ids.stream(expansion.seed, expansion.expansion_id, "writer").randrange(100) < part:
        whole += 1
    return tuple(range(whole))
