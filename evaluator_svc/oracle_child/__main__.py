"""The child's loop: one JSON request a line on stdin, one JSON answer a line on stdout.

Answers: ``{"ok": {...}}``, or ``{"fault": line}`` when the operator is to blame. Anything else that goes wrong ends
the process with a traceback on stderr: the controller treats that as infrastructure.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from evaluator_svc.oracle_child.answers import Oracle
from evaluator_svc.oracle_child.baseline import Baseline
from evaluator_svc.oracle_child.gpu_peaks import Calibrator
from evaluator_svc.oracle_child.model import OperatorFault
from shared.confining import leave_privileges

Served = Oracle | Baseline | Calibrator
ROLES: dict[str, type[Served]] = {"oracle": Oracle, "baseline": Baseline, "calibrator": Calibrator}
ASKED = ("describe", "case", "relations", "wrong_names", "wrong", "fresh", "settled", "perturbed", "repeat", "release")
"""Of an oracle."""
ACTIONS = frozenset({*ASKED, "attach", "load", "compile", "cool", "run", "measure"})


def main() -> None:
    leave_privileges()  # or root's child could read what its parent keeps from it
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the operator prints must not be read as an answer
    served: Served | None = None
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        try:
            if request["action"] == "open":
                served = ROLES[request["role"]](request)
                answer: dict[str, Any] = {}
            elif request["action"] in ACTIONS:
                answer = getattr(served, request["action"])(request)
            else:
                raise ValueError(f"unknown action {request['action']!r}")
            answers.write(json.dumps({"ok": answer}) + "\n")
        except OperatorFault as fault:
            answers.write(json.dumps({"fault": str(fault)}) + "\n")


if __name__ == "__main__":
    main()
