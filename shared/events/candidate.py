"""What the synthesizer answers an expansion with (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from shared.events.evaluation import Bound, Status
from shared.events.values import Entry, KernelRef
from shared.shapes import LATER


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
class MoveOutcome:
    """A move and what was measured of it, as those who write the next kernel are told. Unknown ratios are 0."""

    candidate_id: str
    parent_ids: tuple[str, ...]
    move: Move
    status: Status
    bound: Bound = Bound.UNKNOWN
    ratio_ppm: int = 0
    """Speedup over the search's baseline; with a ``basis``, the first draft's cost over its own."""
    gain_ppm: int = 0
    """Time, or cost, of its first parent over its own: above 1,000,000 the move paid."""
    signature: str = ""
    """Which error it is, equal for equal errors (``shared/error_signatures.py``); empty for one that passed."""
    basis: str = ""
    """What the ratios rest on where nothing was timed: ``counted`` or ``modelled``, as ``Basis`` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the synthesizer saw when it wrote a candidate, and how a model was asked for it."""

    memory: Memory
    diagnosis: Bound = Bound.UNKNOWN
    sibling_ids: tuple[str, ...] = ()
    negative_ids: tuple[str, ...] = ()
    """Failed nodes it was told to avoid."""
    document_ids: tuple[str, ...] = ()
    skill_ids: tuple[str, ...] = ()
    prompt_hash: str = ""
    """Blob of the first question; empty when no model was asked."""
    conversation_hash: str = ""
    """Blob of the whole exchange, repair turns included, as JSON lines: who said what, and what it cost."""
    asking: str = ""
    """How a model was asked: ``moves``, ``whole`` or ``edits``; empty when none was."""
    endpoint: str = ""
    """Name of the endpoint in its configuration."""
    model: str = ""
    """The model as the endpoint names it in its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What one endpoint took of a ``Usage``, whether or not it answered. ``cost_micro`` is -1 without a price."""

    endpoint: str
    tokens: int = 0
    """Read and written."""
    cost_micro: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a candidate cost to write, all turns of its conversation together.

    ``input_tokens`` are all tokens of the prompts, ``cached_tokens`` those of them that the endpoint read from its
    cache; ``output_tokens`` are all that were generated, ``reasoning_tokens`` those of them that nobody sees.
    ``cost_micro``, in millionths of the configured currency, is -1 when the price is unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_micro: int = 0
    latency_ns: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    """Tokens of the prompts that the endpoint wrote to its cache, where writing has a price of its own."""
    requests: int = 0
    """Requests sent, failed ones included; 0 for an answer that was on record."""
    estimated: bool = False
    """Whether the endpoint left counts out, so that they are this project's estimate, never too low."""
    spends: tuple[Spend, ...] = ()
    """By endpoint, by name. What is in no share (older logs have none) is the endpoint's that ``Context`` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRecord:
    """What one endpoint has brought in its search so far: what a choice among endpoints rests on.

    A candidate *gains* when it passes and its measured interval lies above its parent's speedup, or, for a draft, above
    1; ``gain_micro`` sums the natural logarithms of those gains, in millionths.
    """

    endpoint: str
    asked: int = 0
    """Candidates rejected, with a verdict that counts, or left to another endpoint after this one took tokens."""
    gains: int = 0
    gain_micro: int = 0
    tokens: int = 0
    cost_micro: int = 0
    """-1 when a price is unknown."""


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
    context: Context = field(default=Context(memory=Memory.CLEAN), metadata=LATER)
    """What a model was shown and how it was asked; the default where none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionFailed:
    """The expansion as a whole failed. ``code``: unsupported_operator, endpoint, budget …

    ``pauses``: no other expansion can succeed until somebody acts, so the search waits instead of failing.
    """

    search_id: str
    expansion_id: str
    code: str
    detail: str = ""
    at_ns: int = 0
    pauses: bool = False
    usage: Usage = field(default=Usage(), metadata=LATER)
    """What was spent all the same."""
