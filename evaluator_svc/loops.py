"""Innermost loops of a kernel, cut out of its assembly (pure). GNU assembler, AT&T syntax, x86-64."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LABEL = re.compile(r"^([.\w$]+):")
_JUMP = re.compile(r"^\s+j\w+\s+([.\w$]+)")
_INSTRUCTION = re.compile(r"^\s+([a-z][\w.]*)\s*(.*)$")
_PACKED = re.compile(r"^v?(\w+?)(ps|pd|ph)$")
_SCALAR = re.compile(r"^v?(\w+?)(ss|sd)$")
_STACK = re.compile(r"\((%rsp|%rbp)\)")
_VECTOR = re.compile(r"%([xyz])mm")
_BITS = {"x": 128, "y": 256, "z": 512}
LONGEST = 2000
"""Instructions; longer spans between a label and a jump back to it are no innermost loop worth modelling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFacts:
    """One innermost loop. ``packed``/``scalar`` count floating-point instructions; ``spills`` vector moves to or from
    the stack.
    """

    label: str
    instructions: tuple[str, ...]
    packed: int
    scalar: int
    spills: int
    vector_bits: int
    calls: tuple[str, ...] = ()
    """Functions called in the loop; their callers save registers, which is not counted as spilling."""

    @property
    def floating(self) -> int:
        return self.packed + self.scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Modelled, not measured. ``cpu`` is the processor model used."""

    loop: str
    cycles: float
    port_cycles: float
    cpu: str


def innermost(assembly: str) -> tuple[LoopFacts, ...]:
    """Loops without a loop inside that do floating-point work, most such instructions first."""
    lines = assembly.splitlines()
    spans = sorted(_spans(lines), key=lambda span: span[1] - span[0])
    chosen: list[tuple[int, int]] = []
    for first, last in spans:
        if not any(first <= inner and done <= last for inner, done in chosen):
            chosen.append((first, last))
    loops = [_facts(lines, first, last) for first, last in chosen]
    return tuple(sorted((loop for loop in loops if loop.floating), key=lambda loop: (-loop.floating, loop.label)))


def _spans(lines: list[str]) -> Iterator[tuple[int, int]]:
    """(line of the label, line of the jump back) of every backward jump."""
    labels: dict[str, int] = {}
    for number, line in enumerate(lines):
        label = _LABEL.match(line)
        if label:
            labels[label.group(1)] = number
            continue
        jump = _JUMP.match(line)
        if jump and jump.group(1) in labels and number - labels[jump.group(1)] <= LONGEST:
            yield labels[jump.group(1)], number


def _facts(lines: list[str], first: int, last: int) -> LoopFacts:
    body, packed, scalar, spills, bits = [], 0, 0, 0, 0
    calls: list[str] = []
    for line in lines[first + 1 : last + 1]:
        found = _INSTRUCTION.match(line.split("#")[0])
        if not found:
            continue
        name, operands = found.group(1), found.group(2)
        if name.startswith("call"):
            calls.append(operands.strip().removesuffix("@PLT"))
        elif not name.startswith("j"):
            body.append(f"{name} {operands.strip()}".strip())
        if _PACKED.match(name):
            moves = name.lstrip("v").startswith("mov")
            packed += not moves
            spills += moves and bool(_STACK.search(operands))
            bits = max([bits, *(_BITS[size] for size in _VECTOR.findall(operands))])
        elif _SCALAR.match(name):
            scalar += not name.lstrip("v").startswith("mov")
    return LoopFacts(
        label=_LABEL.match(lines[first]).group(1),  # type: ignore[union-attr]
        instructions=tuple(body),
        packed=packed,
        scalar=scalar,
        spills=0 if calls else spills,
        vector_bits=bits,
        calls=tuple(dict.fromkeys(calls)),
    )
