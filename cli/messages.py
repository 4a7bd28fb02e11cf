"""Where log messages of the services go: the run's own file, so that they never break the live view."""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager
from pathlib import Path

from shared import logs
from shared.settings import from_env


def messages_to(path: Path) -> AbstractContextManager[None]:
    """Write log messages to ``path`` for the length of the block, as ``LOG_*`` say.

    Raises:
        UserError: as ``wanted``.
    """
    return logs.written(wanted(), logging.FileHandler(path, encoding="utf-8", delay=True))


def wanted() -> logs.LogSettings:
    """What ``LOG_*`` ask for.

    Raises:
        UserError: names the variable that is wrong.
    """
    return from_env(logs.LogSettings, os.environ)
