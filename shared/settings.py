"""Environment variables to frozen dataclasses, one helper for every service.

A field ``poll_wait_s: float = 0.25`` of a settings class read with prefix ``SEARCH_`` is the variable
``SEARCH_POLL_WAIT_S``. Fields are ``str``, ``int``, ``float``, ``bool`` or ``Path``; their unit is part of their name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from shared.errors import UserError

T = TypeVar("T")

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")


def from_env(owner: type[T], environment: Mapping[str, str], prefix: str = "") -> T:
    """An ``owner`` (a dataclass) from ``environment``; absent or empty variables leave the field's default.

    Raises:
        UserError: a variable without default is absent, does not parse, or is refused by ``owner``; names the variable.
    """
    shape: Any = owner
    hints = get_type_hints(shape)
    values: dict[str, object] = {}
    for item in fields(shape):
        variable = prefix + item.name.upper()
        text = environment.get(variable, "").strip()
        if text:
            values[item.name] = _parse(variable, text, hints[item.name])
        elif item.default is MISSING and item.default_factory is MISSING:
            raise UserError("is not set", where=variable)
    try:
        return owner(**values)
    except ValueError as error:
        raise UserError(str(error), where=f"{prefix}{_refused(shape, values)}") from error


def _refused(owner: Any, values: Mapping[str, object]) -> str:
    """Which of ``values`` ``owner`` refuses whatever the others are, as its variable ends; ``*`` where it takes two."""
    needed = {item.name for item in fields(owner) if item.default is MISSING and item.default_factory is MISSING}
    for name in values:
        try:
            owner(**{other: value for other, value in values.items() if other in needed or other == name})
        except ValueError:
            return name.upper()
    return "*"


def _parse(variable: str, text: str, kind: Any) -> object:
    parsers: dict[Any, tuple[str, Callable[[str], object]]] = {
        str: ("text", str),
        int: ("an integer", int),
        float: ("a number", _finite),
        bool: ("one of true, false", _boolean),
        Path: ("a path", Path),
    }
    if kind not in parsers:
        raise TypeError(f"{variable}: settings fields cannot be {kind!r}")
    expected, parse = parsers[kind]
    try:
        return parse(text)
    except ValueError as error:
        raise UserError(f"is {text!r}, expected {expected}", where=variable) from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _boolean(text: str) -> bool:
    word = text.lower()
    if word not in TRUE + FALSE:
        raise ValueError(text)
    return word in TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class PortSettings:
    """Which adapters a process uses; the defaults are the embedded mode."""

    bus_url: str = "memory:"
    """``BUS_URL``: where records flow."""
    store_url: str = "sqlite:./data/kernelevolve.db"
    """``STORE_URL``: where journals, documents and blobs are kept."""
    cache_url: str = "memory:"
    """``CACHE_URL``: leases and what may be lost."""
