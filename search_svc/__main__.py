"""``python -m search_svc``: the service on the ports that the environment names."""

from __future__ import annotations

import os
import sys

from search_svc import replica
from search_svc.settings import from_env
from shared import exit_codes, process
from shared.errors import UserError


def main() -> int:
    """Run until told to stop; the exit code."""
    try:
        settings, port_settings = from_env(os.environ)
    except UserError as error:
        print(error, file=sys.stderr)
        return exit_codes.BAD_INPUT
    return process.main(lambda ports: [replica.build(ports, settings)], port_settings)


if __name__ == "__main__":
    sys.exit(main())
