"""``python -m deploy.validation``: every complaint on a line, and exit status 1 when there is one."""

from __future__ import annotations

import sys

from deploy.validation import checks
from deploy.validation.variables import ROOT


def main() -> int:
    """The exit status."""
    said = list(checks.complaints(ROOT))
    for complaint in said:
        print(complaint, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
