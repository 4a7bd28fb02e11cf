"""The error of work that a signal stopped."""

from __future__ import annotations

import signal
from pathlib import Path

from shared import exit_codes


class Interrupted(Exception):
    """The work on the run at ``path`` was stopped by signal ``number``; what it journalled is kept."""

    def __init__(self, path: Path, number: signal.Signals) -> None:
        self.number = number
        self.exit_code = exit_codes.SIGNALLED + number
        super().__init__(f"interrupted; `kernelevolve resume {path}` goes on from here")


class InterruptedOnChips(Interrupted):
    """The searches for several chips under ``path`` were stopped; ``standing`` is a line for each of them."""

    def __init__(self, path: Path, number: signal.Signals, standing: tuple[str, ...]) -> None:
        super().__init__(path, number)
        self.args = ("\n".join((f"{self} with every chip, or one alone:", *(f"  {line}" for line in standing))),)


class Detached(Interrupted):
    """Watching a search on a server was stopped by signal ``number``; the search goes on."""

    def __init__(self, search_id: str, number: signal.Signals) -> None:
        Exception.__init__(
            self,
            f"no longer watching; the search goes on: `kernelevolve watch {search_id}` follows it again, "
            f"`kernelevolve cancel {search_id}` ends it",
        )
        self.exit_code = exit_codes.SIGNALLED + number
