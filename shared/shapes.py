"""What a dataclass looks like to a codec: each field's kind, whether it is a list, and its default (pure).

Reflection happens once per class; both codecs, protobuf and JSON, walk the cached result.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from enum import Enum, StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

INT64_MAX = (1 << 63) - 1
INT64_MIN = -(1 << 63)
IDENTITY_SUFFIXES = ("_id", "_hash")
LATER = {"later": True}
"""``field(default=…, metadata=LATER)``: a nested field that a message got after its first version. It is left out of
the bytes while it holds its default, so that what older programs wrote has the same bytes, and digests, as ever.
A field that may be None, ``Nested | None``, is one of these.
"""


class Kind(Enum):
    """What one element of a field is."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    ENUM = "enum"
    NESTED = "nested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. ``default`` means nothing when the field is required."""

    name: str
    kind: Kind
    repeated: bool
    type: type
    required: bool
    default: object
    identifies: bool
    """A required identifier or hash: never empty, because something is looked up by it."""
    later: bool = False
    """See ``LATER``."""
    optional: bool = False
    """May be None, which is its default: written as nothing at all, or as ``null``."""


@cache
def fields_of(owner: type) -> tuple[Field, ...]:
    """Fields of the dataclass ``owner`` in order.

    Raises:
        TypeError: a field's type is none of str, int, bool, StrEnum, dataclass or a tuple of one of them, or a
            dataclass or None that is not ``LATER`` with the default None.
    """
    hints = get_type_hints(owner)
    return tuple(
        _field(item.name, hints[item.name], item.default, later="later" in item.metadata) for item in fields(owner)
    )


def _field(name: str, annotation: Any, default: object, *, later: bool) -> Field:
    repeated = get_origin(annotation) is tuple
    optional = get_origin(annotation) is UnionType and NoneType in get_args(annotation)
    element = get_args(annotation)[0] if repeated or optional else annotation
    kind, required = _kind(element), default is MISSING
    if optional and not (kind is Kind.NESTED and later and default is None):
        raise TypeError(f"no wire form for {name}: {annotation!r}")
    return Field(
        name=name,
        kind=kind,
        repeated=repeated,
        type=element,
        required=required,
        default=default,
        identifies=required and kind is Kind.TEXT and not repeated and name.endswith(IDENTITY_SUFFIXES),
        later=later,
        optional=optional,
    )


def _kind(element: Any) -> Kind:
    basic = {str: Kind.TEXT, int: Kind.INTEGER, bool: Kind.BOOLEAN}.get(element)
    if basic is not None:
        return basic
    if isinstance(element, type) and issubclass(element, StrEnum):
        return Kind.ENUM
    if isinstance(element, type) and hasattr(element, "__dataclass_fields__"):
        return Kind.NESTED
    raise TypeError(f"no wire form for {element!r}")
