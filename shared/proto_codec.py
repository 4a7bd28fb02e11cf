"""Dataclass to protobuf message and back, by reflection over both (pure).

A dataclass and its message have the same name and the same field names. A ``StrEnum`` member ``SkillStatus.SUPPORTED``
is the proto value ``SKILL_STATUS_SUPPORTED``; ``*_UNSPECIFIED`` is never written and reads as "absent".
An absent field takes the dataclass's default, so bytes written before a field existed still decode; an absent field
without a default is poison.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from protos.events.v1 import candidate_pb2, capacity_pb2, evaluation_pb2, search_pb2, skill_pb2, values_pb2
from shared.errors import Poison
from shared.shapes import Field, Kind, fields_of

PACKAGE = "protos.events.v1"
_FILES = (values_pb2, evaluation_pb2, candidate_pb2, search_pb2, skill_pb2, capacity_pb2)
_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")

Convert = Callable[[Any], Any]
Read = Callable[[Any, str], Any]


def to_message(value: Any) -> Message:
    """The message of a dataclass instance.

    Raises:
        ValueError: an integer beyond 64 bits, text that is not Unicode, or a required identifier that is empty.
    """
    owner: Any = type(value)
    codec = _codec(owner)
    message = codec.message()
    codec.write(value, message)
    return message


def from_message(owner: type, message: Message) -> Any:
    """The ``owner`` instance that ``message`` carries.

    Raises:
        Poison: a required part is absent, or the constructor refuses the values; names the field.
    """
    return _codec(owner).read(message, owner.__name__)


def number(member: Any) -> int:
    """The proto value of an enumeration's ``member``, for messages that are no events."""
    return _enum_values(type(member))[member]


def member(enum: Any, value: int, path: str) -> Any:
    """The member of ``enum`` that the proto value ``value`` names; None for ``*_UNSPECIFIED``.

    Raises:
        Poison: no member has the value; names ``path``.
    """
    return _enum_converters(enum)[1](value, path) if value else None


@cache
def message_class(owner: type) -> type[Message]:
    """Raises ``KeyError`` when no proto file defines ``owner``'s message."""
    for file in _FILES:
        descriptor = file.DESCRIPTOR.message_types_by_name.get(owner.__name__)
        if descriptor is not None:
            return GetMessageClass(descriptor)
    raise KeyError(f"{PACKAGE}.{owner.__name__}")


@dataclass(frozen=True, slots=True)
class _FieldCodec:
    """How one field is put into and taken out of a message."""

    field: Field
    presence: bool
    write_one: Convert
    read_one: Read


class _Codec:
    """Both directions for one dataclass, with every lookup done beforehand."""

    def __init__(self, owner: type) -> None:
        self.owner = owner
        self.message = message_class(owner)
        descriptors = self.message.DESCRIPTOR.fields_by_name
        self._fields = tuple(
            _field_codec(field, presence=descriptors[field.name].has_presence) for field in fields_of(owner)
        )

    def write(self, value: Any, message: Any) -> None:
        for codec in self._fields:
            field, item = codec.field, getattr(value, codec.field.name)
            if field.identifies and not item:
                raise ValueError(f"{self.owner.__name__}.{field.name} is empty")
            if field.kind is Kind.NESTED:
                _write_nested(codec, item, message)
            elif field.repeated:
                getattr(message, field.name).extend([codec.write_one(each) for each in item])
            else:
                setattr(message, field.name, codec.write_one(item))

    def read(self, message: Any, where: str) -> Any:
        values = {codec.field.name: _read_field(codec, message, where) for codec in self._fields}
        try:
            return self.owner(**values)
        except ValueError as error:
            raise Poison(f"{where}: {error}") from error


def _write_nested(codec: _FieldCodec, item: Any, message: Any) -> None:
    inner = _codec(codec.field.type)
    target = getattr(message, codec.field.name)
    if codec.field.repeated:
        for each in item:
            inner.write(each, target.add())
    elif not (codec.field.later and item == codec.field.default):
        target.SetInParent()
        inner.write(item, target)


def _read_field(codec: _FieldCodec, message: Any, where: str) -> Any:
    field, read_one = codec.field, codec.read_one
    path = f"{where}.{field.name}"
    if field.repeated:
        return tuple(read_one(each, path) for each in getattr(message, field.name))
    absent = codec.presence and not message.HasField(field.name)
    raw = getattr(message, field.name)
    if absent or (field.kind is Kind.ENUM and raw == 0):
        if field.required:
            raise Poison(f"{path} is absent")
        return field.default
    if field.identifies and not raw:
        raise Poison(f"{path} is empty")
    return read_one(raw, path)


def _field_codec(field: Field, *, presence: bool) -> _FieldCodec:
    write_one, read_one = _converters(field)
    return _FieldCodec(field, presence, write_one, read_one)


def _converters(field: Field) -> tuple[Convert, Read]:
    if field.kind is Kind.ENUM:
        return _enum_converters(field.type)
    if field.kind is Kind.NESTED:
        return _unused, lambda raw, path: _codec(field.type).read(raw, path)
    return _same, lambda raw, _path: raw


def _enum_converters(enum: Any) -> tuple[Convert, Read]:
    values = _enum_values(enum)
    members = {number: member for member, number in values.items()}

    def read(number: int, path: str) -> Any:
        member = members.get(number)
        if member is None:
            raise Poison(f"{path}: {enum.__name__} has no value {number}")
        return member

    return values.__getitem__, read


def _enum_values(enum: Any) -> dict[Any, int]:
    prefix = _WORD_START.sub("_", enum.__name__).upper()
    for file in _FILES:
        descriptor = file.DESCRIPTOR.enum_types_by_name.get(enum.__name__)
        if descriptor is not None:
            numbers = descriptor.values_by_name
            return {member: numbers[f"{prefix}_{member.name}"].number for member in enum}
    raise KeyError(f"{PACKAGE}.{enum.__name__}")


def _same(value: Any) -> Any:
    return value


def _unused(value: Any) -> Any:
    raise AssertionError(f"nested {value!r} is written in place")


@cache
def _codec(owner: type) -> _Codec:
    return _Codec(owner)
