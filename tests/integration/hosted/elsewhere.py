"""Runs hosted modules where the machine grants less, and prints what became of them as JSON.

``python -m tests.integration.hosted.elsewhere CONDITION[+CONDITION] CACHE``: conditions as in
``tests.integration.evaluator.elsewhere``, and ``no-reading``: the memory of other processes may not be read.
"""

from __future__ import annotations

import errno
import json
import os
import sys

from evaluator_svc import judge
from evaluator_svc.hosted import child
from evaluator_svc.runner.process import RunFailure
from shared.errors import UserError
from tests.integration.evaluator.elsewhere import impose
from tests.integration.hosted.softmax_module import RIGHT, Ran, forward, lab, said, softmax, values

MODULES = {
    "fork": forward("os.fork()", "return torch.softmax(x, -1)", before="import os\n"),
    "socket": forward("socket.socket()", "return torch.softmax(x, -1)", before="import socket\n"),
    "reads a file of the project": f"open({judge.__file__!r}).read()\n" + RIGHT,
    "reads /proc": forward("open('/proc/self/maps').read()", "return torch.softmax(x, -1)"),
    "writes a file": "open('/tmp/hosted-left-behind', 'w').write('x')\nraise ValueError('it was written')\n" + RIGHT,
    "kills its parent": forward("os.kill(os.getppid(), 9)", "return torch.softmax(x, -1)", before="import os\n"),
    "returns its input": forward("return x"),
    "writes to its input": forward("return torch.softmax(x, -1, out=x)"),
}


def main() -> dict[str, str]:
    found = {}
    with lab() as bench:

        async def right() -> None:
            async with bench.open(RIGHT, stained=True) as runner:
                runner.write_input(0, 0, values())
                ran = await runner.run(1)
                assert isinstance(ran, Ran), said(ran)
                got = memoryview(runner.output_bytes(0, 0)).cast("f")
                close = max(abs(a - b) for a, b in zip(got, softmax(values()).ravel(), strict=True)) < 1e-6
                found.update({"right": "right" if close else "wrong", "level": runner.sandbox})
                found["read by"] = "the candidate's side" if runner.exporting else "the controller"

        bench.loop.run(right())
        for name, text in MODULES.items():
            outcome = bench.outcome(text)
            found[name] = said(outcome).split(";")[0] if isinstance(outcome, RunFailure) else "ran"
    return found


def refuse_reading() -> None:
    def refused(pid: int) -> None:
        raise PermissionError(errno.EPERM, f"the memory of {pid}")

    child.Memory = refused  # type: ignore[misc, assignment]


if __name__ == "__main__":
    conditions = sys.argv[1].split("+")
    if "no-reading" in conditions:
        refuse_reading()
    impose([one for one in conditions if one != "no-reading"])
    os.environ["XDG_CACHE_HOME"] = sys.argv[2]
    try:
        print(json.dumps(main()))
    except UserError as error:
        print(json.dumps({"refused": str(error)}))
