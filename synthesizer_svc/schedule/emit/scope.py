"""Names of values in nested blocks of any language (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self


@dataclass
class Scope:
    """A block inside ``parent``. ``names`` are of what is computed in it, by what is computed."""

    parent: Self | None = None
    names: dict[object, str] = field(default_factory=dict, kw_only=True)

    def find(self, key: object) -> str | None:
        """The name of ``key``, here or further out."""
        scope: Scope | None = self
        while scope is not None:
            if key in scope.names:
                return scope.names[key]
            scope = scope.parent
        return None
