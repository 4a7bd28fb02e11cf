"""Tables of a chip sheet to dataclasses, strictly: what is wrong, where, and how to mend it (pure)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from shared.errors import ChipError

T = TypeVar("T")
NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def table(owner: type[T], raw: Any, where: str, **given: Any) -> T:
    """An ``owner`` (a dataclass) from a table; ``given`` are fields that come from elsewhere.

    Fields are texts, numbers, booleans, tuples of texts (arrays) or dictionaries from texts to one of these (tables).

    Raises:
        ChipError: an unknown or missing key, or a value of another type; ``where`` names the file and the table.
    """
    if not isinstance(raw, Mapping):
        raise ChipError("is no table", where=where, hint="write [name] and its keys below")
    shape: Any = owner
    known = {item.name: item for item in fields(shape) if item.name not in given}
    for key in raw:
        if key not in known:
            raise ChipError(f"unknown key `{key}`", where=where, hint=f"known: {', '.join(sorted(known))}")
    hints = get_type_hints(shape)
    values = dict(given)
    for name, item in known.items():
        if name in raw:
            values[name] = value(raw[name], hints[name], f"{where}.{name}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ChipError(f"`{name}` is missing", where=where, hint=f"add `{name} = …`, {_named(hints[name])}")
    try:
        return owner(**values)
    except ValueError as error:
        raise ChipError(str(error), where=where) from error


def value(raw: Any, kind: Any, where: str) -> Any:
    """``raw`` as ``kind``.

    Raises:
        ChipError: it is of another type.
    """
    if isinstance(kind, UnionType):  # an optional number
        kind = next(one for one in get_args(kind) if one is not type(None))
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple and isinstance(raw, list):
        return tuple(value(one, parts[0], f"{where}[{index}]") for index, one in enumerate(raw))
    if origin is dict and isinstance(raw, Mapping):
        return {str(name): value(one, parts[1], f"{where}.{name}") for name, one in raw.items()}
    number = isinstance(raw, (int, float)) and not isinstance(raw, bool) and math.isfinite(raw)
    if kind is float and number:
        return float(raw)
    if kind in NAMES and kind is not float and type(raw) is kind:  # a float that is none is not finite
        return raw
    raise ChipError(f"is {raw!r}, expected {_named(kind)}", where=where)


def _named(kind: Any) -> str:
    if isinstance(kind, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple:
        return "an array of texts"
    if origin is dict:
        return f"a table whose values are each {_named(parts[1])}"
    return NAMES.get(kind, "a table")
