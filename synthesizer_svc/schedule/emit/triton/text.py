"""Indented lines of Python (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Lines:
    """Text under construction."""

    indent: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line if line else "")

    def extend(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.add(line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head:`` and what is below it."""
        self.add(f"{head}:")
        self.indent += 1
        yield
        self.indent -= 1

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
