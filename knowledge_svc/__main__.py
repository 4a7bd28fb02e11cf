"""``python -m knowledge_svc``: the service as a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from knowledge_svc import service, settings
from shared import process
from shared.ports import Ports
from shared.service import Service


def services(ports: Ports) -> Sequence[Service]:
    """The one service of this process, configured from the environment."""
    built, _ = service.build(ports, settings.from_env(os.environ))
    return (built,)


if __name__ == "__main__":
    sys.exit(process.main(services))
