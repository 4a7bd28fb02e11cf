"""What the synthesizer answers an expansion with (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.events.evaluation import Bound
from shared.events.values import Entry, KernelRef


class Memory(StrEnum):
    """What an expansion may look at besides the operator and the chip."""

    PARENT = "parent"
    SIBLINGS = "siblings"
    PARENT_AND_SIBLINGS = "parent+siblings"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What changed between parent and child: a schedule move, a crossover, or a rewrite by a model."""

    name: str
    parameters: tuple[Entry, ...] = ()
    rationale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the synthesizer saw when it wrote a candidate."""

    memory: Memory
    diagnosis: Bound = Bound.UNKNOWN
    sibling_ids: tuple[str, ...] = ()
    negative_ids: tuple[str, ...] = ()
    """Failed nodes it was told to avoid."""
    document_ids: tuple[str, ...] = ()
    skill_ids: tuple[str, ...] = ()
    prompt_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a candidate cost to write. ``cost_micro`` is -1 when the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_micro: int = 0
    latency_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateProduced:
    search_id: str
    expansion_id: str
    candidate_id: str
    index: int
    kernel: KernelRef
    move: Move
    context: Context
    parent_ids: tuple[str, ...] = ()
    usage: Usage = Usage()
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRejected:
    """The synthesizer has nothing to evaluate at this index. ``code``: exhausted, duplicate, unparsable, refused …"""

    search_id: str
    expansion_id: str
    candidate_id: str
    index: int
    code: str
    detail: str = ""
    usage: Usage = Usage()
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionFailed:
    """The expansion as a whole failed. ``code``: unsupported_operator, endpoint, budget …"""

    search_id: str
    expansion_id: str
    code: str
    detail: str = ""
    at_ns: int = 0
