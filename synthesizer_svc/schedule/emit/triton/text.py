"""Indented lines of Python (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from synthesizer_svc.schedule.emit.text import Indented


@dataclass
class Lines(Indented):
    """Text under construction."""

    STEP = "    "

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head:`` and what is below it."""
        self.add(f"{head}:")
        with self.indented():
            yield
