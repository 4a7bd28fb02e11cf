"""Indented lines of C++ (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Lines:
    """Text under construction."""

    indent: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append("  " * self.indent + line if line else "")

    def extend(self, lines: list[str]) -> None:
        for line in lines:
            self.add(line)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """``head {`` … ``}``."""
        self.add(f"{head} {{" if head else "{")
        self.indent += 1
        yield
        self.indent -= 1
        self.add(tail)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
