"""What one expansion may see: blobs, documents and skills, with the memory mode applied.

Every writer gets the same ``Seen``, and the ``Context`` recorded with a candidate lists exactly what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.chips import ChipSheet, Machine
from shared.errors import OperatorError, Poison
from shared.events import (
    NOT_THE_KERNELS_FAULT,
    PPM,
    Bound,
    Context,
    Entry,
    Evaluation,
    ExpansionRequested,
    KernelRef,
    Memory,
    MoveOutcome,
    OperatorRef,
    Prior,
    SkillDistilled,
    Status,
)
from shared.knowledge import Knowledge, KnowledgeQuery, Passage
from shared.operators import OperatorSpec, parse
from shared.store import Blobs, Documents
from synthesizer_svc import told
from synthesizer_svc.prompts import Asking, PromptInput, Quoted
from synthesizer_svc.told import Told

ERROR_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenKernel:
    """A kernel the expansion may look at. ``schedule_json`` is None when no schedule wrote it."""

    candidate_id: str
    kernel: KernelRef
    source: str
    schedule_json: bytes | None = None
    evaluation: Evaluation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPrior:
    """Another chip's schedule to begin from."""

    prior: Prior
    schedule_json: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything an expansion is written from."""

    expansion: ExpansionRequested
    operator: OperatorSpec
    chip: ChipSheet
    machine: Machine
    parents: tuple[SeenKernel, ...]
    siblings: tuple[SeenKernel, ...]
    negative: tuple[SeenKernel, ...]
    passages: tuple[Passage, ...]
    skills: tuple[SkillDistilled, ...]
    priors: tuple[SeenPrior, ...] = ()

    @property
    def bound(self) -> Bound:
        """Diagnosis of the first parent shown."""
        evaluation = self.parents[0].evaluation if self.parents else None
        return evaluation.diagnosis.bound if evaluation else Bound.UNKNOWN

    def context(self, *, skill_ids: tuple[str, ...], prompt_hash: str = "") -> Context:
        """The record of what was seen; ``skill_ids`` are those that bore on this candidate."""
        return Context(
            memory=self.expansion.memory,
            diagnosis=self.bound,
            sibling_ids=tuple(kernel.candidate_id for kernel in self.siblings),
            negative_ids=tuple(kernel.candidate_id for kernel in self.negative),
            document_ids=tuple(passage.document_id for passage in self.passages),
            skill_ids=skill_ids,
            prompt_hash=prompt_hash,
        )

    def prompt_input(
        self,
        *,
        language: str,
        flags: tuple[str, ...],
        entry: str,
        quoted_max: int,
        asking: Asking = Asking.WHOLE,
        choices: str = "",
    ) -> PromptInput:
        """What a model is shown of this. ``quoted_max`` bounds the siblings, and the failures, that are quoted."""
        return PromptInput(
            operator_name=self.operator.ref.name,
            operator_source=self.operator.source,
            chip=self.chip,
            machine=self.machine,
            language=language,
            flags=flags,
            threads=self.expansion.threads,
            entry=entry,
            asking=asking,
            choices=choices,
            parents=self._quoted(self.parents),
            # A request names its best siblings and nearest failures first.
            siblings=self._quoted(self.siblings[:quoted_max]),
            negative=self._quoted(self.negative[:quoted_max]),
            history=self.history,
            setbacks=self.setbacks,
            passages=self.passages,
            skills=self.skills,
        )

    @property
    def history(self) -> tuple[MoveOutcome, ...]:
        """The first parent shown and its ancestors, nearest first, as far as the request tells of them."""
        if not self.parents:
            return ()
        told = {outcome.candidate_id: outcome for outcome in self.expansion.outcomes}
        line: dict[str, MoveOutcome] = {}
        name = self.parents[0].candidate_id
        while name in told and name not in line:  # a foreign request may run in circles
            line[name] = told[name]
            name = next(iter(told[name].parent_ids), "")
        return tuple(line.values())

    @property
    def setbacks(self) -> tuple[MoveOutcome, ...]:
        """Moves that failed or did not pay, other than those that led to a parent."""
        hidden = {*self.expansion.parent_ids, *(outcome.candidate_id for outcome in self.history)}
        return tuple(
            outcome
            for outcome in self.expansion.outcomes
            if outcome.candidate_id not in hidden
            and outcome.status not in NOT_THE_KERNELS_FAULT
            and (outcome.status is not Status.PASSED or 0 < outcome.gain_ppm <= PPM)
        )

    def _quoted(self, kernels: tuple[SeenKernel, ...]) -> tuple[Quoted, ...]:
        told = {outcome.candidate_id: outcome for outcome in self.expansion.outcomes}
        return tuple(
            Quoted(
                candidate_id=kernel.candidate_id,
                source=kernel.source,
                language=kernel.kernel.language,
                evaluation=kernel.evaluation,
                outcome=told.get(kernel.candidate_id),
            )
            for kernel in kernels
        )


async def load_operator(blobs: Blobs, ref: OperatorRef) -> OperatorSpec:
    """The operator's text as the search froze it.

    Raises:
        Poison: its blob is unknown or is not an operator; neither mends itself.
    """
    try:
        source = (await blobs.get(ref.source_hash)).decode()
        return parse(source, name=ref.name)
    except KeyError as error:
        raise Poison(f"operator blob {ref.source_hash} is unknown") from error
    except (UnicodeDecodeError, OperatorError) as error:
        raise Poison(f"operator blob {ref.source_hash}: {error}") from error


class Gatherer:
    """Reads what an expansion refers to."""

    def __init__(
        self, blobs: Blobs, knowledge: Knowledge, documents_max: int, *, remembering: Documents | None = None
    ) -> None:
        """``remembering`` keeps what knowledge told each expansion first, so that a model is asked the same again."""
        self._blobs = blobs
        self._knowledge = knowledge
        self._documents_max = documents_max
        self._remembering = remembering

    async def gather(
        self,
        expansion: ExpansionRequested,
        operator: OperatorSpec,
        chip: ChipSheet,
        machine: Machine,
        language: str,
        operator_class: str,
    ) -> Seen:
        """Everything ``expansion`` may see; ``language`` is that of the kernel to come.

        Raises:
            Poison: a blob it names is unknown.
        """
        shows_parents = expansion.memory in (Memory.PARENT, Memory.PARENT_AND_SIBLINGS)
        shows_siblings = expansion.memory in (Memory.SIBLINGS, Memory.PARENT_AND_SIBLINGS)
        parents = (
            await self._kernels(expansion.parents, expansion.parent_ids, expansion.parent_evaluations)
            if shows_parents
            else ()
        )
        siblings = await self._kernels(expansion.siblings, expansion.sibling_ids) if shows_siblings else ()
        known = await self._told(expansion, _query(expansion, operator, parents, language, operator_class))
        return Seen(
            expansion=expansion,
            operator=operator,
            chip=chip,
            machine=machine,
            parents=parents,
            siblings=siblings,
            negative=await self._kernels(expansion.negative, expansion.negative_ids),
            passages=known.passages,
            skills=known.skills,
            priors=tuple(
                [
                    SeenPrior(prior=prior, schedule_json=await self._blob(prior.schedule_hash))
                    for prior in expansion.priors
                ]
            ),
        )

    async def _told(self, expansion: ExpansionRequested, query: KnowledgeQuery) -> Told:
        if self._remembering is None:
            return await told.ask(self._knowledge, query, self._documents_max)
        return await told.ask_once(
            self._remembering, expansion.expansion_id, self._knowledge, query, self._documents_max
        )

    async def _kernels(
        self, refs: tuple[KernelRef, ...], names: tuple[str, ...], evaluations: tuple[Evaluation, ...] = ()
    ) -> tuple[SeenKernel, ...]:
        seen = []
        for position, ref in enumerate(refs):
            seen.append(
                SeenKernel(
                    candidate_id=names[position] if position < len(names) else ref.kernel_id,
                    kernel=ref,
                    source=(await self._blob(ref.source_hash)).decode("utf-8", "replace"),
                    schedule_json=await self._blob(ref.schedule_hash) if ref.schedule_hash else None,
                    evaluation=evaluations[position] if position < len(evaluations) else None,
                )
            )
        return tuple(seen)

    async def _blob(self, digest: str) -> bytes:
        try:
            return await self._blobs.get(digest)
        except KeyError as error:
            raise Poison(f"kernel blob {digest} is unknown") from error


def _query(
    expansion: ExpansionRequested,
    operator: OperatorSpec,
    parents: tuple[SeenKernel, ...],
    language: str,
    operator_class: str,
) -> KnowledgeQuery:
    evaluation = parents[0].evaluation if parents else None
    environment = {entry.name: entry.value for entry in evaluation.environment} if evaluation else {}
    vendor = environment.get("processor", "").partition(" ")[0]  # for documents, where a chip sheet has several
    # What limits the kernel comes first: summary, then what its hot loops call, which no operator's name tells.
    said = [evaluation.diagnosis.summary, *_hints(evaluation.diagnosis.evidence)] if evaluation else []
    return KnowledgeQuery(
        chip=expansion.chip,
        language=language,
        operator_class=operator_class,
        bound=evaluation.diagnosis.bound if evaluation else Bound.UNKNOWN,
        error=_error(evaluation) if evaluation else "",
        words=" ".join([*said, operator.ref.name.replace("_", " "), vendor]).strip(),
    )


def _hints(evidence: tuple[Entry, ...]) -> list[str]:
    """Words in the diagnosis' evidence that documents are written under."""
    found = [entry.value for entry in evidence if entry.name == "calls" and entry.value != "none"]
    if any(entry.name == "spills" and entry.value != "0" for entry in evidence):
        found.append("register spills")
    return found


def _error(evaluation: Evaluation) -> str:
    """Status and first evidence of a failure: what error signatures are matched against; empty for a pass."""
    if evaluation.status is Status.PASSED:
        return ""
    return f"{evaluation.status.value} {evaluation.why[:ERROR_CHARS_MAX]}".strip()
