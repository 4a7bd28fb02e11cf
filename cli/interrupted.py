"""The error of work that a signal stopped."""

from __future__ import annotations

import signal
from pathlib import Path

EXIT_SIGNALLED = 128


class Interrupted(Exception):
    """The work on the run at ``path`` was stopped by signal ``number``; what it journalled is kept."""

    def __init__(self, path: Path, number: signal.Signals) -> None:
        self.exit_code = EXIT_SIGNALLED + number
        super().__init__(f"interrupted; `kernelevolve resume {path}` goes on from here")
