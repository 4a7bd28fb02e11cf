"""The layers that catch a kernel, by name (pure): what a verdict's evidence says under ``caught_by``.

A verdict that is not PASSED names the one layer that made it. The cheat suite asserts that name: a cheat caught by
chance, by another layer than the one meant for its kind, is a finding too.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from shared.events import Entry
from shared.events.evaluation import CAUGHT_BY


class Layer(StrEnum):
    """In the order in which an evaluation meets them."""

    ADMISSION = "operator admission"
    STATIC = "static gate"
    """Form only: syntax, entry point, signature, flags. What a text looks like is advice, never a verdict."""
    BUILD = "build box"
    LAUNCH = "launch"
    """It could not be loaded, or its constructor failed."""
    SANDBOX = "sandbox"
    """A refused system call, file, process or address."""
    LIMITS = "resource limits"
    """Time, memory, processes, output."""
    CHANNEL = "result channel"
    """It spoke for itself, left, or closed the channel."""
    CRASH = "crash"
    """A fatal signal or an exception of its own."""
    CONTRACT = "output contract"
    """Container, type, shape, dtype, device, aliasing, bounds of its buffers."""
    INPUTS = "input immutability"
    POISON = "output poison"
    """Something it should have written still holds what the controller put there."""
    JUDGE = "judge"
    """Wrong values."""
    PRECISION = "precision discriminator"
    DETERMINISM = "determinism"
    LATE = "output fingerprint"
    """Outputs changed after the call had returned."""
    THREADS = "thread audit"
    """Threads or processes that outlive a call."""
    KERNELS = "kernel audit"
    """No kernel of its own ran."""
    FRESH = "fresh values"
    """Right, or fast, only on values it had seen before."""
    CLOCKS = "independent clocks"
    """Clocks that cannot all be true."""
    FLOOR = "speed-of-light floor"
    SANITIZERS = "sanitizers"
    """An access outside of its memory, by the vendor's tool."""
    STATISTICS = "statistics"
    """The measurement allows no claim."""


def caught(layer: Layer) -> Entry:
    """The evidence entry that names ``layer``; the first of its verdict."""
    return Entry(name=CAUGHT_BY, value=layer.value)


def caught_by(evidence: Iterable[Entry]) -> Layer | None:
    """The layer that ``evidence`` names, None for none."""
    return next((Layer(entry.value) for entry in evidence if entry.name == CAUGHT_BY), None)
