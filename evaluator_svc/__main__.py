"""``python -m evaluator_svc``: an evaluator worker of one chip as a process of its own."""

from __future__ import annotations

import os
import sys
import threading
import time

from evaluator_svc import service, settings
from evaluator_svc.evaluators import evaluator_of
from evaluator_svc.pool import Worker
from shared import exit_codes, process
from shared.errors import UserError
from shared.ports import Ports
from shared.service import Service

LAST_RESORT_S = 2.0
"""A stuck worker that has not ended by itself after this long is ended."""


def main() -> int:
    """Run until stopped; returns the exit code."""
    try:
        chosen = settings.from_env(os.environ)
    except UserError as error:
        print(error, file=sys.stderr)
        return exit_codes.BAD_INPUT

    def build(ports: Ports) -> list[Service]:
        evaluator = evaluator_of(ports, chosen)
        return [service.serve(ports, Worker(ports, evaluator, when_stuck=end_for_sure), evaluator)]

    return process.main(build)


def end_for_sure() -> None:
    """End the process even if what is stuck keeps its event loop or a thread from ending."""

    def end() -> None:
        time.sleep(LAST_RESORT_S)
        os._exit(exit_codes.STUCK)

    threading.Thread(target=end, name="last resort", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
