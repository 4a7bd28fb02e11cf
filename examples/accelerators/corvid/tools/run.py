"""Corvid's runtime, as `run` of the contract: the program on the machine, with its buffers."""

import json
import pathlib
import sys

import machine


def main(path: pathlib.Path) -> None:
    request = json.loads(path.read_text())
    job = machine.Job(path.parent, request)
    answer, _ = job.ended(machine.run(job, []))
    (path.parent / request["result"]).write_text(json.dumps(answer))


main(pathlib.Path(sys.argv[1]))
