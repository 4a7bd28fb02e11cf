"""A key that no log line, error or ``repr`` shows (pure)."""

from __future__ import annotations

from typing import NoReturn

from shared.redaction import HIDDEN, SECRET_LENGTH_MIN, Spelled

SHORT = SECRET_LENGTH_MIN
"""Shorter ones are placeholders ("EMPTY", "none"): taking them out of texts would hide ordinary words."""


class Secret:
    """Text that only ``reveal`` gives. It cannot be pickled, formatted or written to JSON by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text, for the one header it goes into."""
        return self._value

    def hide(self, text: str) -> str:
        """``text`` without this secret, for whatever an endpoint says, as JSON or a page may write it; nor with its
        beginning, where it was cut.
        """
        if len(self._value) < SHORT:
            return text
        spelled = Spelled.of(self._value)
        text = spelled.taken_out(text)
        said, cut = (text[: -len(HIDDEN)], HIDDEN) if text.endswith(HIDDEN) else (text, "")
        begun = spelled.begun_at(said, SHORT)
        return said[:begun] + HIDDEN if begun >= 0 else said + cut

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down")
