"""Typed values out of TOML tables; what is wrong with one is one line that says where (pure)."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, TypeVar, get_type_hints

from shared.errors import UserError

T = TypeVar("T")


def of_kind(value: Any, kind: type, where: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < sys.float_info.max else math.inf
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        words = {str: "text", int: "an integer", float: "a number", bool: "true or false", dict: "a table"}
        raise UserError(f"is {value!r}, expected {words[kind]}", where=where)
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"is {value!r}, expected a number", where=where)
    return value


def choice(kind: type[T], value: str, where: str) -> T:
    names: Any = kind
    try:
        chosen: T = names(value)
    except ValueError:
        known = ", ".join(member.value for member in names)
        raise UserError(f"unknown value `{value}`", where=where, hint=f"known: {known}") from None
    return chosen


def record(kind: type[T], base: T, table: Mapping[str, Any], where: str) -> T:
    """``base`` with what ``table`` says."""
    shape: Any = kind
    hints = get_type_hints(shape)
    known = [each.name for each in fields(shape)]
    changed: dict[str, Any] = {}
    for option, value in table.items():
        if option not in known:
            raise UserError(f"unknown option `{option}`", where=where, hint=f"known: {', '.join(known)}")
        changed[option] = _field(hints[option], value, f"{where}: {option}")
    altered: Any = base
    try:
        return replace(altered, **changed)  # type: ignore[no-any-return]
    except ValueError as error:
        raise UserError(str(error), where=where) from error


def _field(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return choice(hint, of_kind(value, str, where), where)
    if hint == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise UserError(f"is {value!r}, expected a list of texts", where=where)
        return tuple(value)
    return of_kind(value, int if hint == (int | None) else hint, where)
