"""Every choice and limit of the evaluator, with its name and default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from evaluator_svc.kernel_policy import LibraryKernels
from shared import settings

HARNESS_VERSION = "7"
"""Part of the key of every remembered verdict: raise it when a verdict could come out differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``EVALUATOR_*``. Times in seconds, sizes in bytes.

    Raises:
        ValueError: a limit that is not positive.
    """

    operators_max: int = 2
    """Operators whose oracle and baseline processes are kept alive."""
    oracle_s: float = 120.0
    """For one answer of the oracle, the import of torch included."""
    compile_s: float = 300.0
    """For ``torch.compile`` of the baseline."""
    call_s: float = 10.0
    """For one call of a kernel; a block of calls gets this and its expected time."""
    kernel_memory_bytes: int = 2 << 30
    """What a kernel may allocate besides its buffers."""
    case_bytes_max: int = 4 << 30
    """Inputs and references of one operator in the controller's memory."""
    gpu_case_bytes_max: int = 24 << 30
    """The same where they are kept on a GPU."""
    catalogue_s: float = 60.0
    """For making an operator's held-out sets; those that would come later are left out, but for the core."""
    lease_s: float = 30.0
    """Of the device, renewed every third of it while something is timed: a dead worker's device is free after this."""
    device_wait_s: float = 1800.0
    """For the exclusive use of the cores, before the worker calls itself overloaded."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """``EVALUATOR_*``: how a worker takes part in its chip's pool. Times in seconds.

    Whatever happens to a worker, what it had in its hands is somebody else's after ``claim_ttl_s``; an evaluation that
    cannot be ended is given up ``deadline_s + grace_s`` after it began, and free ``claim_ttl_s`` later at the latest.

    Raises:
        ValueError: a limit that is not positive.
    """

    slots: int = 2
    """Evaluations in progress: one builds while another is timed."""
    intake_max: int = 4096
    """Requests taken from the topic and not finished, before the worker's intake pauses. What is not taken in yet
    waits its turn on the topic, whoever it is for: fair shares need room."""
    settle_s: float = 0.5
    """How often the intake asks what has become of them, and commits."""
    poll_wait_s: float = 0.25
    """How long one poll of the topic waits; also how late the intake notices a stop."""
    claim_ttl_s: float = 15.0
    """A claim, renewed every third of it. A worker that is silent for this long has lost its work."""
    claim_wait_s: float = 0.5
    """How long one ask for work waits; also how late a slot notices a stop."""
    deliveries_max: int = 3
    """Workers that may lose one request before it is answered INFRASTRUCTURE."""
    deadline_s: float = 3600.0
    """For one evaluation, its wait for the device included; then it is ended and answered INFRASTRUCTURE."""
    grace_s: float = 10.0
    """For an evaluation that was told to end. After that the worker counts as stuck and ends itself."""
    drain_s: float = 30.0
    """For the evaluations in progress when the worker is told to stop; then they go back to the pool."""
    announce_s: float = 30.0
    """How often the worker announces its capacity."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLimits:
    """``SIMULATED_*``: the chip that measures nothing.

    Raises:
        ValueError: a negative or unordered duration, a share outside 0 to 1.
    """

    median_s: float = 0.2
    """Half of the evaluations take less."""
    sigma: float = 1.0
    """Of the log-normal durations: at 1.0 one in a hundred takes ten times the median, at 0 all take the same."""
    longest_s: float = 10.0
    failing: float = 0.2
    """Share of kernels that fail."""
    speedup_sigma: float = 0.35
    """Of the log-normal speedups, whose median is 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.median_s <= self.longest_s or self.sigma < 0 or self.speedup_sigma < 0:
            raise ValueError("expected 0 <= median_s <= longest_s and no negative sigma")
        if not 0 <= self.failing <= 1:
            raise ValueError(f"failing is {self.failing}, expected 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSettings:
    """``TIMING_*``: how much is measured, and when a moment counts as too noisy.

    Raises:
        ValueError: fewer rounds than an interval needs.
    """

    rounds: int = 11
    """Fewest rounds of a SEARCH measurement; each has two blocks per contestant. With fewer than 11 no speedup can be
    proved."""
    rounds_max: int = 32
    """Most of them: measuring stops in between, as soon as the numbers decide."""
    final_rounds: int = 11
    """Fewest rounds in each of the fresh processes of a FINAL measurement."""
    final_rounds_max: int = 48
    final_processes: int = 3
    block_ns: int = 4_000_000
    hopeless_rounds: int = 3
    """A candidate three times slower than every baseline in each of this many rounds is measured no further."""
    drift_ppm: int = 50_000
    """NOISY when the baseline's own A/A interval lies entirely beyond 1 +- this."""
    spread_ppm: int = 300_000
    """NOISY when a baseline's blocks scatter more than this (1.48 x median absolute deviation over median). An idle
    two-core virtual machine shows up to 0.18."""
    clock_slack_ppm: int = 100_000
    clock_slack_ns: int = 300_000
    """The controller's clock may exceed the runner's by this share and this much per block; else one of them lies."""
    implausible_ppm: int = 600_000
    """A time below this share of the traffic floor is no measurement but an attack on one. The margin is for peaks
    that were calibrated on a busy machine."""
    noisy_tries: int = 3
    """Measurements of one kernel before a noisy moment is reported."""
    noisy_budget_s: int = 30
    """No measurement is repeated for noise after this long."""
    noisy_streak: int = 3
    """After this many noisy verdicts in a row the machine counts as busy, and kernels are measured once."""
    sets_max: int = 1024
    """Most sets of input and output buffers that a process has for its timed blocks; every call of a block is on a set
    of its own, so a block is shortened to this many calls. Large operators have fewer sets,"""
    sets_bytes_max: int = 256 << 20
    """as many as this holds, and two at least."""
    gpu_sets_bytes_max: int = 12 << 30
    """The same on a GPU that holds the sets itself. There inputs and outputs are kept about three times, and by the
    baselines once more."""
    fresh_cases: int = 32
    """Most draws in the pool of values that timed calls get; every process of a candidate sees each for the first time
    once. Large operators have fewer,"""
    fresh_bytes_max: int = 256 << 20
    """as many as this holds, and two at least."""
    gpu_fresh_bytes_max: int = 4 << 30
    """The same where they are kept on a GPU."""

    def __post_init__(self) -> None:
        if self.fresh_cases < 1 or self.sets_max < 2:
            raise ValueError("fresh_cases must be at least 1, sets_max at least 2")
        if min(self.rounds, self.final_rounds) < 2 or min(self.final_processes, self.noisy_tries) < 1:
            raise ValueError("rounds must be at least 2, final_processes and noisy_tries at least 1")
        if self.rounds_max < self.rounds or self.final_rounds_max < self.final_rounds:
            raise ValueError("rounds_max and final_rounds_max must be no fewer than rounds and final_rounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentionLimits:
    """``CONTENTION_*``: what others may do on this machine while something is timed; beyond it, NOISY.

    Raises:
        ValueError: a negative limit.
    """

    foreign_ppm: int = 250_000
    """Share of the machine's core time that other programs use."""
    waiting_ppm: int = 150_000
    """Share of their time that kernel and baselines wait for a core."""
    steal_ppm: int = 100_000
    """Share of core time that a hypervisor gives to others."""
    frequency_ppm: int = 30_000
    """Relative change of the measured cores' frequency (evaluation.md §3.2, 1)."""
    quiet_wait_ms: int = 3_000
    """How long a measurement that was disturbed waits for a quiet moment before it is repeated."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryLimits:
    """``CANARY_*``: when a worker tries itself, and what follows from a fault. Times in seconds.

    Raises:
        ValueError: a limit that is not positive.
    """

    every_evaluations: int = 200
    every_s: float = 900.0
    """Between two probes, whichever of the two comes first."""
    clock_after_s: float = 20.0
    """From a quick probe, as at the start, to the first that times something, too."""
    cheats: int = 2
    """Known cheats in one probe, by lot; one in a quick probe."""
    failures_in_a_row: int = 5
    """INFRASTRUCTURE verdicts that make a worker try itself at once."""
    back_off_s: float = 30.0
    """After the first bad probe; doubled after each further one,"""
    back_off_most_s: float = 1800.0
    """up to this."""
    probes_max: int = 5
    """Bad probes in a row after which the worker stays out."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """``EVALUATOR_*``: what is a matter of taste about a kernel that is right.

    Raises:
        ValueError: a choice that is not offered.
    """

    library_kernels: str = LibraryKernels.REFUSE
    """``refuse`` or ``allow`` a Python-hosted module that computes by library operators alone."""

    def __post_init__(self) -> None:
        offered = [choice.value for choice in LibraryKernels]
        if self.library_kernels not in offered:
            raise ValueError(f"library_kernels is {self.library_kernels!r}, expected one of {', '.join(offered)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilingSettings:
    """``EVALUATOR_*``: when a vendor's profiler is asked about a kernel that passed on a GPU.

    Raises:
        ValueError: a limit that is not positive.
    """

    profile_search: bool = False
    """Also in SEARCH evaluations: each then takes some seconds more. A FINAL one is profiled anyway."""
    profile_s: float = 90.0
    """For one kernel, in seconds; beyond it the diagnosis does without counters."""

    def __post_init__(self) -> None:
        if self.profile_s <= 0:
            raise ValueError(f"profile_s is {self.profile_s}, expected more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitizingSettings:
    """``EVALUATOR_*``: the vendor's sanitizers, on a GPU.

    Raises:
        ValueError: a limit that is not positive.
    """

    sanitize_final: bool = True
    """Look at winners; without it none is trusted beyond L3."""
    sanitize_s: float = 120.0
    """For one check of one kernel, in seconds; beyond it the kernel stays at L3."""

    def __post_init__(self) -> None:
        if self.sanitize_s <= 0:
            raise ValueError(f"sanitize_s is {self.sanitize_s}, expected more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    limits: Limits = field(default_factory=Limits)
    timing: TimingSettings = field(default_factory=TimingSettings)
    contention: ContentionLimits = field(default_factory=ContentionLimits)
    pool: PoolLimits = field(default_factory=PoolLimits)
    canary: CanaryLimits = field(default_factory=CanaryLimits)
    simulated: SimulatedLimits = field(default_factory=SimulatedLimits)
    policy: Policy = field(default_factory=Policy)
    profiling: ProfilingSettings = field(default_factory=ProfilingSettings)
    sanitizing: SanitizingSettings = field(default_factory=SanitizingSettings)
    chip: str = "cpu-x86_64"
    cache: Path = field(default_factory=lambda: Path(platformdirs.user_cache_dir("kernelevolve")))
    """Calibrations, compiled baselines and the machine-wide lock."""


def from_env(environment: Mapping[str, str]) -> Settings:
    """Settings from environment variables.

    Raises:
        UserError: names the variable that does not parse or is out of range.
    """
    return Settings(
        limits=settings.from_env(Limits, environment, "EVALUATOR_"),
        timing=settings.from_env(TimingSettings, environment, "TIMING_"),
        contention=settings.from_env(ContentionLimits, environment, "CONTENTION_"),
        pool=settings.from_env(PoolLimits, environment, "EVALUATOR_"),
        canary=settings.from_env(CanaryLimits, environment, "CANARY_"),
        simulated=settings.from_env(SimulatedLimits, environment, "SIMULATED_"),
        policy=settings.from_env(Policy, environment, "EVALUATOR_"),
        profiling=settings.from_env(ProfilingSettings, environment, "EVALUATOR_"),
        sanitizing=settings.from_env(SanitizingSettings, environment, "EVALUATOR_"),
        chip=environment.get("EVALUATOR_CHIP", "") or "cpu-x86_64",
    )
