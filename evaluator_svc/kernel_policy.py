"""Whether a hosted kernel computes by a kernel of its own (pure): the decision on what the kernel audit saw.

A module that defines no kernel is a composition of library operators (H58 of the taxonomy: ``torch.matmul(a, b)``), one
whose kernels never ran has fallen back (H59). Both are NO_CUSTOM_KERNEL unless the user allows library kernels
(``EVALUATOR_LIBRARY_KERNELS=allow``). A module whose own kernel ran may call library operators besides; its evidence
says which, because a search that wants a kernel has to know (peers.md T21).

The audit's report was made in the candidate's process. It convicts by itself: nobody forges a report against himself.
It acquits together with what the controller knows: that the text defines a Triton kernel, or that the build box handed
out an extension.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evaluator_svc.layers import Layer, caught
from shared.events import Entry, Status

NAMES_MAX = 16
NAME_CHARS = 80


class LibraryKernels(StrEnum):
    """What a module without a kernel of its own is."""

    REFUSE = "refuse"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The audit's report, checked for form. ``own``: kernel -> runs; ``library``: operator -> (calls, elements, ns)."""

    own: Mapping[str, int]
    library: Mapping[str, tuple[int, int, int]]
    compiled: bool
    replays: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``status`` is PASSED or NO_CUSTOM_KERNEL; the evidence of the latter begins with its layer."""

    status: Status
    evidence: tuple[Entry, ...]


def parse(report: str) -> Seen | None:
    """What a report says; None when it is not of the form that ``hosted.kernel_audit`` writes."""
    try:
        said = json.loads(report)
        own = {_name(name): _count(runs) for name, runs in _some(said["own"])}
        library = {_name(name): _three(numbers) for name, numbers in _some(said["library"])}
        return Seen(own=own, library=library, compiled=said["compiled"] is True, replays=_count(said["replays"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def defines_kernel(static: Sequence[Entry]) -> bool:
    """Whether ``Built.static`` names a kernel: seen in the text by the controller, or handed out by the build box."""
    return any(entry.name in ("kernels", "extensions") and entry.value for entry in static)


def decide(static: Sequence[Entry], seen: Seen | None, *, library: LibraryKernels = LibraryKernels.REFUSE) -> Finding:
    """The finding on a module, given what its text tells and what was seen in a call (None: no usable report).

    What the text reaches for (``features``) goes into the evidence as it is: advice to whoever reads the verdict.
    """
    named = {entry.name: entry.value for entry in static}
    beside = (*_operators(seen), *(entry for entry in static if entry.name == "features"))
    if not defines_kernel(static):
        compiled = "torch.compile" in named.get("features", "").split(", ") or (seen is not None and seen.compiled)
        what = "a composition that torch.compile compiles" if compiled else "a composition of library operators"
        return _without(f"defines no kernel of its own: {what}", beside, library)
    if seen is None:
        return _without("the audited call gave no usable report", beside, LibraryKernels.REFUSE)
    if not any(seen.own.values()) and seen.replays:
        # What is in a graph was launched when it was captured; a profiler tells, where there is a GPU.
        replayed = Entry(name="own_kernels", value=f"{seen.replays} graph replays, which tell no kernels")
        return Finding(status=Status.PASSED, evidence=(replayed, *beside))
    if not any(seen.own.values()):
        kernels = ", ".join(value for name in ("kernels", "extensions") if (value := named.get(name)))
        inherits = " and it inherits the reference" if "reference" in named.get("features", "").split(", ") else ""
        return _without(f"defines {kernels}, but none of it ran{inherits}: it fell back", beside, library)
    ran = ", ".join(f"{name} ({runs}x)" for name, runs in seen.own.items())
    return Finding(status=Status.PASSED, evidence=(Entry(name="own_kernels", value=ran), *beside))


def _without(why: str, beside: tuple[Entry, ...], library: LibraryKernels) -> Finding:
    if library is LibraryKernels.ALLOW:
        return Finding(status=Status.PASSED, evidence=(Entry(name="own_kernels", value="none"), *beside))
    evidence = (caught(Layer.KERNELS), Entry(name="reason", value=why), *beside)
    return Finding(status=Status.NO_CUSTOM_KERNEL, evidence=evidence)


def _operators(seen: Seen | None) -> tuple[Entry, ...]:
    """``aten.mm 1x 85 %, aten.add 2x 15 %``: shares of the time that library operators took in the audited call."""
    if seen is None or not seen.library:
        return ()
    total = max(1, sum(ns for _, _, ns in seen.library.values()))
    told = (f"{name} {calls}x {100 * ns // total} %" for name, (calls, _, ns) in seen.library.items())
    return (Entry(name="library_operators", value=", ".join(told)),)


def _some(said: Any) -> list[tuple[Any, Any]]:
    return list(dict(said).items())[:NAMES_MAX]


def _name(said: Any) -> str:
    if not isinstance(said, str):
        raise TypeError("a name that is no text")
    return "".join(c if c.isprintable() else "?" for c in said[:NAME_CHARS])


def _count(said: Any) -> int:
    if type(said) is not int or not 0 <= said < 1 << 63:
        raise ValueError("no count")
    return said


def _three(said: Any) -> tuple[int, int, int]:
    calls, elements, ns = map(_count, said)
    return calls, elements, ns
