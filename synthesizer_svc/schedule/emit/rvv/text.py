"""Indented lines of C (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from synthesizer_svc.schedule.emit.text import Indented


@dataclass
class Lines(Indented):
    """Text under construction."""

    STEP = "  "

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head {`` … ``}``."""
        self.add(f"{head} {{" if head else "{")
        with self.indented():
            yield
        self.add("}")
