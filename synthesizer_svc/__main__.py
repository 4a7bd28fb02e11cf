"""``python -m synthesizer_svc``: the synthesizer as a process of its own."""

from __future__ import annotations

import os
import sys

from shared import runtime
from shared.errors import UserError
from synthesizer_svc import service, settings
from synthesizer_svc.no_knowledge import NoKnowledge


def main() -> int:
    """Run until stopped; returns the exit code."""
    try:
        chosen = settings.from_env(os.environ)
    except UserError as error:
        print(error, file=sys.stderr)
        return runtime.EXIT_USER_ERROR
    return runtime.main(lambda ports: [service.build(ports, chosen, NoKnowledge())])


if __name__ == "__main__":
    sys.exit(main())
