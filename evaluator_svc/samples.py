"""What timing one candidate in one process gives, as data (pure). Times in ns."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaluator_svc.judge import Verdict
from evaluator_svc.sequential import Decision
from evaluator_svc.statistics import log_ratios
from shared.events import Entry

CANDIDATE = "candidate"
LEAST = 0.25
"""Of a block so much is its calls, whatever it takes besides."""


@dataclass(kw_only=True)
class Samples:
    """Times of one contestant: per call by block, two blocks a round of ``lengths`` calls. ``own_block_ns`` is what it
    worked meanwhile, without waiting for a core or a command: a baseline by its clock (it is trusted), a candidate by
    its processor time.
    """

    calls: int = 1
    """That fill a block; the two of a round have about two thirds and four thirds of it."""
    block_ns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    cold_ns: list[float] = field(default_factory=list)
    own_block_ns: list[float] = field(default_factory=list)

    @property
    def median_ns(self) -> float:
        return statistics.median(self.block_ns) if self.block_ns else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocked:
    """A block of the candidate by every clock there is. ``cpu_ns``: see ``runner.process.Ran``; None: not known."""

    calls: int
    controller_ns: int
    runner_ns: int
    cpu_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What all ``calls`` of a block took, by the wall and in work (as ``Samples.own_block_ns``)."""

    calls: int
    wall_ns: float
    own_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Novelty:
    """Two blocks of one turn: on values new to the process, and on values that it has had. Buffers, caches and commands
    are alike, so the two differ in nothing but what a kernel may remember. ``late``: so many calls, the last ones of
    blocks of one length, differ, and all others are on values that it has had; 0: all do.
    """

    new: Block
    known: Block
    late: int = 0


@dataclass(kw_only=True)
class Measured:
    """What one process' rounds gave."""

    samples: dict[str, Samples]
    clocks: list[Clocked] = field(default_factory=list)
    novelty: list[Novelty] = field(default_factory=list)
    empty_ns: list[float] = field(default_factory=list)
    """Round trips of commands to make no call,"""
    empty_own_ns: list[float] = field(default_factory=list)
    """what the process worked for them,"""
    settle_ns: list[float] = field(default_factory=list)
    """and round trips of the empty commands that follow every other, of which no time is claimed."""
    pipelined: bool = False
    """Calls of a block were in flight together."""
    alike: bool = False
    """The two blocks of each of ``novelty`` had equally many calls."""
    off_calls_ns: float = 0.0
    """What a block takes besides its calls: no part of the candidate's ``block_ns``."""
    first_uses: int = 0
    verified: int = 0
    """Calls whose outputs were."""
    verdict: Verdict = field(default_factory=Verdict)
    decision: Decision | None = None
    """Why no more rounds were measured; None after a failure."""
    watched: tuple[Entry, ...] = ()
    """What others did on the machine meanwhile: every signal that there is."""
    disturbed: tuple[Entry, ...] = ()
    """The same, where it was so much that these times say little."""

    def of_calls(self, block_ns: float) -> float:
        """What the calls of a block of the candidate's take, which took ``block_ns``."""
        return max(block_ns - self.off_calls_ns, LEAST * block_ns)

    @property
    def hidden_ns(self) -> float:
        """Calls of a block that take less together are hidden by what it takes besides: it was cut off at ``LEAST``."""
        return LEAST / (1.0 - LEAST) * self.off_calls_ns

    def logs(self) -> Mapping[str, Sequence[float]]:
        """Of each baseline: ``log(baseline / candidate)`` by round."""
        mine = self.samples[CANDIDATE].block_ns
        return {name: list(log_ratios(one.block_ns, mine)) for name, one in self.samples.items() if name != CANDIDATE}
