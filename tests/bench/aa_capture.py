"""Captures many operators in one process, so that torch and its exporter are imported once: see ``aa_kernels.drafts``.

    python -m tests.bench.aa_capture FILE ... > GRAPHS

One line of JSON for each operator's file, in order, in the form of ``synthesizer_svc.schedule.capture``.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from pathlib import Path

from synthesizer_svc.schedule.capture_child import encode_graph, export


def main() -> None:
    """Ends with a traceback at the first operator that cannot be captured."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as graphs:
        os.dup2(2, 1)  # what an operator prints is no graph
        for name in sys.argv[1:]:
            graphs.write(json.dumps(encode_graph(*export(Path(name).read_text(encoding="utf-8")))) + "\n")


if __name__ == "__main__":
    main()
