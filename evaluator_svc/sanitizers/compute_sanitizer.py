"""NVIDIA's Compute Sanitizer around calls of one kernel, in a box with it.

Four calls on one public case are looked at, each by a tool of its own. What a module's host code does is in the same
process, so a clean report could be forged there, and proves the less the less its author is trusted; nobody forges
findings against himself.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from evaluator_svc.boxed_tool import NO_BOX, BoxedTool, Subject
from evaluator_svc.hosted.box import Profile
from evaluator_svc.sanitizers import report
from evaluator_svc.sanitizers.report import FOUND_STATUS, Found

PROGRAM = "compute-sanitizer"
ABSENT = "compute-sanitizer is not on the path"
MEMORY = "memcheck"
CHECKS = (MEMORY, "racecheck", "synccheck")
"""Accesses outside of allocations; hazards in shared memory; barriers that not all threads reach. What is read before
it was written shows without a tool: outputs are poisoned, and results have to be the same again."""
REPORT = "report.txt"
PRINTED_MOST = 3
EXACT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
"""Every tensor is an allocation: in a pool of PyTorch's an access beside one would be inside another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What one check said. ``refused`` is why it said nothing, empty where it did."""

    check: str
    found: Found
    refused: str = ""


@dataclass(slots=True, kw_only=True)
class ComputeSanitizer:
    """``run`` blocks; ``interrupt`` may be called from another thread.

    ``tool``: where the program is. ``time_s``: for each check. ``profile``: what its process finds in its box.
    """

    tool: Path
    time_s: float
    profile: Profile
    boxed: BoxedTool = field(init=False)
    _interrupted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.boxed = BoxedTool(
            tool=self.tool, time_s=self.time_s, profile=self.profile, report=REPORT, environment=EXACT
        )

    def run(self, subject: Subject, told: Callable[[Looked], bool]) -> None:
        """Every check in turn, until ``told`` has enough.

        Raises:
            ChipError: there is no compiler for the project's own programs.
            Fatal: the box did not start.
            OSError: the folder could not be written.
        """
        for check in CHECKS:
            if self._interrupted or not told(self._looked(subject, check)):
                break

    def interrupt(self) -> None:
        self._interrupted = True
        self.boxed.interrupt()

    def _looked(self, subject: Subject, check: str) -> Looked:
        said = self.boxed.run(subject, self.options(check))
        if said is None:
            return Looked(check=check, found=Found(errors=None), refused=NO_BOX)
        found = report.parse(said.text, said.done.status)
        refused = said.refused(report.complaint(said.text), self.time_s) if found.errors is None else ""
        return Looked(check=check, found=found, refused=refused)

    def options(self, check: str) -> list[str]:
        return [
            "--tool", check,
            "--target-processes", "all",
            "--error-exitcode", str(FOUND_STATUS),
            "--print-limit", str(PRINTED_MOST),
            "--log-file", self.boxed.report_option,
        ]  # fmt: skip


def found() -> Path | None:
    """Where the program is; None without one."""
    path = shutil.which(PROGRAM)
    return Path(path) if path else None
