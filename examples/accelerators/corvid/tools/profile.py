"""Corvid's profiler, as `profile` of the contract: as `run`, with every instruction of the kernel counted."""

import collections
import json
import pathlib
import re
import sys

import machine

TRACED = ["-d", "in_asm,exec,nochain"]
"""The emulator tells each block of instructions when it translates it, and each time it enters one."""
INSTRUCTION = re.compile(rb"0x([0-9a-f]+):\s+([0-9a-f]+)")
ENTERED = re.compile(rb"Trace 0: (0x[0-9a-f]+) \[[0-9a-f]+/([0-9a-f]+)/")
HARNESS = range(0x40000000, 0x40010000)
VECTOR, LOAD, STORE, VECTOR_ACCESS = 0x57, (0x03, 0x07), (0x23, 0x27), (0, 5, 6, 7)


def main(path: pathlib.Path) -> None:
    request = json.loads(path.read_text())
    job = machine.Job(path.parent, request)
    counter = Counter()
    answer, returned = job.ended(machine.run(job, TRACED, counter.line))
    if returned:
        answer |= {"metrics": counter.metrics(), **counter.diagnosis()}
    (path.parent / request["result"]).write_text(json.dumps(answer))


class Counter:
    """Instructions by class, of blocks outside the harness."""

    def __init__(self) -> None:
        self.blocks: dict[bytes, collections.Counter] = {}
        self.translated: list[int] = []
        self.counts: collections.Counter = collections.Counter()

    def line(self, text: bytes) -> None:
        if text.startswith(b"IN:"):
            self.translated = []
        elif text.startswith(b"0x"):
            at, word = INSTRUCTION.match(text).groups()
            if int(at, 16) not in HARNESS:
                self.translated.append(int(word, 16))
        elif entered := ENTERED.match(text):
            if self.translated is not None:
                self.blocks[entered[1]] = collections.Counter(map(classified, self.translated))
                self.translated = None
            self.counts.update(self.blocks[entered[1]])

    def metrics(self) -> dict[str, int]:
        count = self.counts
        return {
            "instructions": sum(count.values()),
            "vector_instructions": count["vector"] + count["vector load"] + count["vector store"],
            "loads": count["load"] + count["vector load"],
            "stores": count["store"] + count["vector store"],
            "branches": count["branch"],
        }

    def diagnosis(self) -> dict[str, str]:
        found = self.metrics()
        vector = found["vector_instructions"] / max(1, found["instructions"])
        moved = (found["loads"] + found["stores"]) / max(1, found["instructions"])
        advice = "use longer vectors (a larger LMUL)" if vector < 0.5 else "do more between a load and a store"
        return {
            "bound": "memory" if moved > 0.4 else "compute",
            "summary": f"{vector:.0%} of the instructions are vector ones, {moved:.0%} loads and stores: {advice}",
        }


def classified(word: int) -> str:
    if word & 3 != 3:  # of two bytes
        where, kind = word & 3, word >> 13 & 7
        if where == 1:
            return "branch" if kind >= 5 else "plain"
        if kind == 0:
            return "plain"
        if where == 2 and kind == 4:
            return "branch" if word >> 2 & 31 == 0 else "plain"
        return "load" if kind < 4 else "store"
    group, width = word & 0x7F, word >> 12 & 7
    wide = "vector " if width in VECTOR_ACCESS and group in (0x07, 0x27) else ""
    if group in LOAD:
        return f"{wide}load"
    if group in STORE:
        return f"{wide}store"
    if group == VECTOR:
        return "plain" if width == 7 else "vector"
    return "branch" if group in (0x63, 0x67, 0x6F) else "plain"


main(pathlib.Path(sys.argv[1]))
