"""A process that holds a secret and captures an operator's text; prints what became of it as JSON.

``python -m tests.integration.confinement.watched_capture CONDITION[+CONDITION] PORT ABSTRACT PLACE ACTION...``; the
conditions are those of ``tests.integration.evaluator.elsewhere``, or ``as-it-is``.
"""

from __future__ import annotations

import json
import logging
import os
import sys

from shared import inspection, reading_box
from synthesizer_svc.schedule.capture import capture
from synthesizer_svc.schedule.graph import Unsupported
from tests.integration.confinement.spy import text
from tests.integration.evaluator.elsewhere import impose


def answer(source: str) -> dict[str, str]:
    try:
        graph = capture(source)
    except Unsupported as refusal:
        return {"refused": refusal.why}
    return {"graph": " ".join(call.op for call in graph.calls)}


def main() -> None:
    condition, port, abstract, place, *actions = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    inspection.keep_out(os.environ)
    impose(condition.split("+"))
    told, silent = (
        text(parent=os.getpid(), port=int(port), abstract=abstract, place=place, actions=tuple(actions), tells=tells)
        for tells in (True, False)
    )
    answers = [answer(told), answer(silent)]
    print(json.dumps({"level": reading_box.machine().level, "answers": answers}))


main()
