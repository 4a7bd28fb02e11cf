"""How a candidate is evaluated: the verdict as a value, its request and its completion (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from shared.events.values import PPM, Entry, KernelRef, OperatorRef
from shared.shapes import LATER


class Status(StrEnum):
    """How the evaluation of one candidate ended. Only PASSED has a speedup or an estimate."""

    PASSED = "PASSED"
    """Correct on every check made; timings are valid."""
    COMPILE_ERROR = "COMPILE_ERROR"
    """The toolchain rejected the source; evidence has its first error."""
    LAUNCH_FAILED = "LAUNCH_FAILED"
    """Built, but could not be loaded, lacks its entry, or the entry refused the operator's own inputs."""
    RUNTIME_ERROR = "RUNTIME_ERROR"
    """Crashed, wrote out of bounds, or returned an error code."""
    TIMEOUT = "TIMEOUT"
    """Ran past its limit; the whole process tree was killed."""
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    """Asked for more memory than the sandbox gives."""
    WRONG_RESULT = "WRONG_RESULT"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    """Two runs on identical bytes differ."""
    MUTATED_INPUT = "MUTATED_INPUT"
    """An input, or memory outside the outputs, changed."""
    PRECISION_DOWNGRADE = "PRECISION_DOWNGRADE"
    """Error is that of a lower precision than the operator declares."""
    NO_CUSTOM_KERNEL = "NO_CUSTOM_KERNEL"
    """Falls back to the reference or a library."""
    CHEAT = "CHEAT"
    """Tried to reach the verdict, the clock, the network or other processes."""
    NOISY = "NOISY"
    """The machine was too noisy to time; requeued, never charged to the candidate."""
    INFRASTRUCTURE = "INFRASTRUCTURE"
    """Our failure; requeued, never charged and never cached."""
    CANCELLED = "CANCELLED"


NOT_THE_KERNELS_FAULT = (Status.NOISY, Status.INFRASTRUCTURE, Status.CANCELLED)
"""Endings that say nothing about the kernel: never charged, learnt from or remembered."""


class Trust(StrEnum):
    """What the verdict rests on; each level includes those before it."""

    NONE = "NONE"
    L0 = "L0"  # compiled
    L1 = "L1"  # correct on public inputs
    L2 = "L2"  # + held-out shapes and values, checks on timed calls
    L3 = "L3"  # + clock agreement, speed-of-light floor, A/B interval
    L4 = "L4"  # + sanitizers, re-measured in fresh workers


class Bound(StrEnum):
    """What limits a kernel."""

    UNKNOWN = "unknown"
    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    OCCUPANCY = "occupancy"
    LAUNCH = "launch"


class Basis(StrEnum):
    """What the cost of a kernel rests on."""

    MEASURED = "measured"
    """Times of the chip itself."""
    COUNTED = "counted"
    """Events counted exactly on an emulator, equal on every repetition."""
    MODELLED = "modelled"
    """Computed from counts, resources and the chip sheet; nothing ran on the chip."""


class Purpose(StrEnum):
    """SEARCH steers; FINAL re-measures a would-be winner in fresh processes on fresh inputs."""

    SEARCH = "SEARCH"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Times of one contestant in one measurement. Block times are per call, in the order measured."""

    name: str
    """``candidate``, ``eager`` or ``compiled`` (``torch.compile``; absent where that cannot compile the operator)."""
    median_ns: int
    block_ns: tuple[int, ...] = ()
    calls_per_block: int = 1
    cold_ns: int = 0
    """First call after the caches were evicted; 0 when not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """``baseline`` time over candidate time: median over mirrored rounds, with an interval that misses the truth on
    either side with a probability below 0.3 %, whenever measuring stopped (``evaluator_svc/statistics.py``).
    """

    baseline: str
    """``eager`` or ``compiled``, as ``Timing.name``."""
    ratio_ppm: int
    low_ppm: int
    high_ppm: int
    delta_ppm: int = 0
    """The worker's noise floor: it is called faster when ``low_ppm`` exceeds 1 by more than this."""

    @property
    def proves_gain(self) -> bool:
        """Whether the measurement supports the word "faster"."""
        return self.low_ppm > PPM + self.delta_ppm


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """An exact count of events in one call of a kernel: ``instructions``, ``vector_work``, ``bytes_loaded``, …"""

    name: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one call of a kernel costs on a chip whose time was not measured: absolute, so that whoever holds two may
    divide them.

    Raises:
        ValueError: the basis is MEASURED, the cost not positive, or the unit has no name.
    """

    basis: Basis
    cost: int
    unit: str
    """Of ``cost``: ``instructions``, ``model cycles``, ``ns``. Costs of different units are never compared."""
    counts: tuple[Count, ...] = ()

    def __post_init__(self) -> None:
        if self.basis is Basis.MEASURED:
            raise ValueError("an estimate is counted or modelled, never measured")
        if self.cost <= 0:
            raise ValueError(f"an estimate costs {self.cost}, which is no cost")
        if not self.unit:
            raise ValueError("an estimate needs a unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Where the kernel stands against measured peaks. Zeros mean unknown, never guessed."""

    bytes_min: int = 0
    """Compulsory traffic: every input read once, every output written once."""
    flops_min: int = 0
    floor_ns: int = 0
    """max(bytes_min / bandwidth, flops_min / peak) with this worker's calibrated peaks, left out what is no bound: all
    inputs' traffic where a baseline beats it (a gather), operations where the kernel does fewer than the reference."""
    fraction_ppm: int = 0
    """floor_ns / measured time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why the kernel is as slow as it is."""

    bound: Bound = Bound.UNKNOWN
    evidence: tuple[Entry, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """Where the evaluation's own time went, in nanoseconds. ``framework`` is what none of the others explains."""

    build_ns: int = 0
    correctness_ns: int = 0
    timing_ns: int = 0
    profile_ns: int = 0
    wait_ns: int = 0
    """Waiting for the device lease."""
    framework_ns: int = 0


CAUGHT_BY = "caught_by"
"""The evidence entry, first of a verdict that is not PASSED, that names the layer which caught the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The verdict on one kernel, a value: a bad kernel is data.

    Raises:
        ValueError: a speedup or an estimate on anything but PASSED, both at once, or PASSED without trust.
    """

    status: Status
    trust: Trust = Trust.NONE
    evidence: tuple[Entry, ...] = ()
    """Why: e.g. ``first_error``, ``max_error``, ``signal``; ends the sentence "rejected because"."""
    timings: tuple[Timing, ...] = ()
    speedups: tuple[Speedup, ...] = ()
    roofline: Roofline = Roofline()
    diagnosis: Diagnosis = Diagnosis()
    stages: StageTimes = StageTimes()
    sandbox: str = ""
    """Sandbox layers in force, e.g. ``namespaces+seccomp+rlimits``."""
    environment: tuple[Entry, ...] = ()
    log_hash: str = ""
    memoised: bool = False
    ledger_hash: str = ""
    """Blob of the ledger: every call, clock, seed and check (``evaluator_svc/ledger.py``)."""
    estimate: Estimate | None = field(default=None, metadata=LATER)
    """What a call costs, where no clock of the chip can be read; never beside a measured speedup."""

    def __post_init__(self) -> None:
        if self.speedups and self.status is not Status.PASSED:
            raise ValueError(f"{self.status} cannot carry a speedup")
        if self.estimate is not None and self.status is not Status.PASSED:
            raise ValueError(f"{self.status} cannot carry an estimate")
        if self.estimate is not None and self.speedups:
            raise ValueError("what was measured is not estimated")
        if self.status is Status.PASSED and self.trust is Trust.NONE:
            raise ValueError("PASSED needs a trust level")

    @property
    def why(self) -> str:
        """The first evidence that says what happened, rather than which layer saw it; empty for none."""
        return next((entry.value for entry in self.evidence if entry.name != CAUGHT_BY), "")

    def speedup(self, baseline: str = "best") -> Speedup | None:
        """The speedup over ``baseline``; "best" is the faster baseline, i.e. the smallest ratio."""
        if baseline == "best":
            return min(self.speedups, key=lambda s: (s.ratio_ppm, s.baseline), default=None)
        return next((s for s in self.speedups if s.baseline == baseline), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequested:
    search_id: str
    evaluation_id: str
    candidate_id: str
    kernel: KernelRef
    operator: OperatorRef
    chip: str
    purpose: Purpose
    threads: int = 1
    attempt: int = 1
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCompleted:
    search_id: str
    evaluation_id: str
    candidate_id: str
    kernel_id: str
    chip: str
    purpose: Purpose
    evaluation: Evaluation
    attempt: int = 1
    at_ns: int = 0
