"""The command lines of AMD's profiler for one call of a kernel (pure); ``rocprof_report`` reads what they leave.

Not started by anything yet: no runner for AMD's cards exists here, and these lines have never run on one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluator_svc.profilers.rocprof_report import GROUPS

PROGRAM = "rocprofv3"


def commands(tool: Path, folder: str, program: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """One line a group of counters, each a run of ``program`` of its own: files ``counted-N_*`` in ``folder``."""
    return tuple(
        (
            str(tool), "--pmc", *group, "--output-format", "csv", "--output-directory", folder,
            "--output-file", output(number), "--", *program,
        )
        for number, group in enumerate(GROUPS)
    )  # fmt: skip


def output(number: int) -> str:
    """The beginning of the names of what run ``number`` leaves."""
    return f"counted-{number}"


def written(number: int) -> tuple[str, ...]:
    """Where run ``number`` leaves its counters, by version of the tool, below its folder."""
    name = f"{output(number)}_counter_collection.csv"
    return (name, f"pass_1/{name}")
