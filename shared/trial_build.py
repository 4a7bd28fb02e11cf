"""Whether a kernel builds: what the synthesizer asks of an evaluator before it hands a kernel on.

A port, in process when embedded and gRPC in a cluster. Building is the evaluator's, in its sandbox: nothing that a
model wrote is ever run by whoever asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shared.events import Status

TEXT_CHARS_MAX = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialKernel:
    """A kernel as it would be evaluated on ``chip``."""

    chip: str
    language: str
    source: str
    flags: tuple[str, ...]
    entry: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """It builds; nothing of it was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildErrors:
    """It does not, and what the evaluator would say. ``text`` is the same for equal kernels, wherever it was built."""

    status: Status
    text: str


class TrialBuild(Protocol):
    async def build(self, kernel: TrialKernel) -> Built | BuildErrors:
        """Check ``kernel`` statically and compile it.

        Raises:
            UserError: there is no evaluator of that chip and language.
            Unavailable: none can tell now.
        """
        ...
