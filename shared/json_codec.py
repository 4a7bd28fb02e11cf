"""Dataclass to plain JSON values and back, strictly (pure): the form of exported logs, which people read and edit.

Reading refuses unknown keys, values of the wrong type and missing keys, and names the field's path. Only a field with
a default may be missing: a log written before the field existed reads as the default.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from shared.errors import Poison
from shared.shapes import INT64_MAX, INT64_MIN, Field, Kind, fields_of


def to_plain(value: Any) -> dict[str, Any]:
    """Every field of a dataclass instance under its own name; tuples become lists, enums their values."""
    owner: Any = type(value)
    return {field.name: _dump(field, getattr(value, field.name)) for field in fields_of(owner)}


def from_plain(owner: type, plain: object, where: str) -> Any:
    """The ``owner`` instance described by ``plain``.

    Raises:
        Poison: naming the path of the offending field, which starts with ``where``.
    """
    shape = fields_of(owner)
    required = tuple(field.name for field in shape if field.required)
    check_keys(plain, required, where, optional=tuple(field.name for field in shape if not field.required))
    assert isinstance(plain, Mapping)
    values = {
        field.name: _load(field, plain[field.name], f"{where}.{field.name}") for field in shape if field.name in plain
    }
    try:
        return owner(**values)
    except ValueError as error:
        raise Poison(f"{where}: {error}") from error


def check_keys(plain: object, names: tuple[str, ...], where: str, optional: tuple[str, ...] = ()) -> None:
    """Raises ``Poison`` unless ``plain`` is an object with the keys ``names`` and no others but ``optional``."""
    if not isinstance(plain, Mapping):
        raise Poison(f"{where}: expected an object, found {type(plain).__name__}")
    for name in names:
        if name not in plain:
            raise Poison(f"{where}.{name} is missing")
    for key in plain:
        if key not in names and key not in optional:
            raise Poison(f"{where}: {shown(key)} is not a known field")


def shown(value: object) -> str:
    """``value`` as part of a one-line message: escaped and short, whatever it is."""
    return reprlib.repr(value)


def text(value: object, where: str) -> str:
    """``value`` as text that UTF-8 can hold; raises ``Poison`` otherwise."""
    if not isinstance(value, str):
        raise Poison(f"{where}: expected text, found {shown(value)}")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise Poison(f"{where}: contains half a surrogate pair")
    return value


def integer(value: object, where: str) -> int:
    """``value`` as a 64-bit integer; raises ``Poison`` otherwise."""
    if type(value) is not int:
        raise Poison(f"{where}: expected an integer, found {shown(value)}")
    if not INT64_MIN <= value <= INT64_MAX:
        raise Poison(f"{where}: does not fit 64 bits")
    return value


def _dump(field: Field, value: Any) -> Any:
    if field.repeated:
        return [_dump_one(field.kind, each) for each in value]
    return _dump_one(field.kind, value)


def _dump_one(kind: Kind, value: Any) -> Any:
    if kind is Kind.NESTED:
        return None if value is None else to_plain(value)
    return value.value if kind is Kind.ENUM else value


def _load(field: Field, value: object, where: str) -> Any:
    if not field.repeated:
        return _load_one(field, value, where)
    if not isinstance(value, list):
        raise Poison(f"{where}: expected a list, found {type(value).__name__}")
    return tuple(_load_one(field, each, f"{where}[{index}]") for index, each in enumerate(value))


def _load_one(field: Field, value: object, where: str) -> Any:
    match field.kind:
        case Kind.TEXT:
            loaded = text(value, where)
            if field.identifies and not loaded:
                raise Poison(f"{where} is empty")
            return loaded
        case Kind.INTEGER:
            return integer(value, where)
        case Kind.BOOLEAN:
            if not isinstance(value, bool):
                raise Poison(f"{where}: expected true or false, found {shown(value)}")
            return value
        case Kind.ENUM:
            return _member(field.type, value, where)
        case Kind.NESTED:
            absent = field.optional and value is None
            return None if absent else from_plain(field.type, value, where)


def _member(enum: Any, value: object, where: str) -> Any:
    try:
        return enum(value)
    except ValueError as error:
        known = ", ".join(member.value for member in enum)
        raise Poison(f"{where}: {shown(value)} is not one of {known}") from error
