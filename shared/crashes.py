"""What a process says that ends of an error which nobody foresaw."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

from shared.redaction import Redaction


def without_secrets() -> None:
    """From now on the traceback of an error that ends this process, ours or a library's, shows no secret either."""

    def show(_kind: type[BaseException], error: BaseException, _where: TracebackType | None) -> None:
        print(Redaction(os.environ)("".join(traceback.format_exception(error))), end="", file=sys.stderr)

    sys.excepthook = show
