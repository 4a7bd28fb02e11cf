"""Nsight Compute around one call of a kernel, in a box with it.

The report is in the kernel's reach, which is why it decides nothing. Counters are read where the driver lets everybody
(``NVreg_RestrictProfilingToAdminUsers=0``); else the tool says ``ERR_NVGPUCTRPERM``.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from evaluator_svc.boxed_tool import NO_BOX, BoxedTool, Subject
from evaluator_svc.hosted import on_gpu
from evaluator_svc.hosted.box import Profile
from evaluator_svc.profilers import ncu_metrics, ncu_report
from evaluator_svc.profilers.ncu_report import KERNELS_MAX, Report

PROGRAM = "ncu"
ABSENT = "ncu (Nsight Compute) is not on the path"
REPORT = "report.csv"


@dataclass(slots=True, kw_only=True)
class Ncu:
    """One call, profiled once. ``interrupt`` may be called from another thread than ``run``.

    ``tool``: where the program is. ``profile``: what its process finds in its box.
    """

    tool: Path
    time_s: float
    profile: Profile
    text: str = field(default="", init=False)
    """What the tool wrote last, for a record."""
    boxed: BoxedTool = field(init=False)

    def __post_init__(self) -> None:
        self.boxed = BoxedTool(tool=self.tool, time_s=self.time_s, profile=self.profile, report=REPORT)

    def run(self, subject: Subject) -> Report:
        """The launches of one call after three that warm it up; blocks for some seconds.

        Raises:
            ChipError: there is no compiler for the project's own programs.
            Fatal: the box did not start.
            OSError: the folder could not be written.
        """
        told = self.boxed.run(subject, self.options())
        if told is None:
            return Report(kernels=(), refused=NO_BOX)
        self.text = told.text
        report = ncu_report.parse(told.text)
        if report.kernels and told.done.status == 0:
            return report
        complaint = ncu_report.complaint(told.text) or ncu_report.complaint(told.done.log)
        return Report(kernels=(), refused=told.refused(complaint, self.time_s))

    def interrupt(self) -> None:
        self.boxed.interrupt()

    def options(self) -> list[str]:
        """Caches are emptied before every launch, as before every timed call; clocks are left as they are, which the
        tool would else set to a base for everybody on the device.
        """
        return [
            "--target-processes", "all",
            "--clock-control", "none",
            "--cache-control", "all",
            "--profile-from-start", "off",
            "--launch-count", str(KERNELS_MAX),
            "--metrics", ",".join(ncu_metrics.asked()),
            "--csv",
            "--page", "raw",
            "--print-units", "base",
            "--log-file", self.boxed.report_option,
        ]  # fmt: skip


def found() -> Path | None:
    """Where the program is; None without one."""
    path = shutil.which(PROGRAM)
    return Path(path) if path else None


def gpu_profile() -> Profile:
    """What the process finds in its box on the one GPU that there is."""
    return on_gpu.profile()
