"""``python -m evaluator_svc``: an evaluator worker of one chip as a process of its own."""

from __future__ import annotations

import os
import sys

from evaluator_svc import service, settings
from shared import runtime
from shared.errors import UserError


def main() -> int:
    """Run until stopped; returns the exit code."""
    try:
        chosen = settings.from_env(os.environ)
    except UserError as error:
        print(error, file=sys.stderr)
        return runtime.EXIT_USER_ERROR
    return runtime.main(lambda ports: [service.build(ports, chosen)])


if __name__ == "__main__":
    sys.exit(main())
