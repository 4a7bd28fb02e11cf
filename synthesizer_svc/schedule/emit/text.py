"""Indented lines of a program under construction, whatever its language (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass
class Indented:
    """A language says by how much a block is indented, and how it begins and ends."""

    STEP: ClassVar[str]
    indent: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append(self.STEP * self.indent + line if line else "")

    def extend(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.add(line)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.indent += 1
        yield
        self.indent -= 1

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
