"""Envelopes as bytes: bus records, journal entries and JSON (pure).

On the bus an event travels as CloudEvents in binary mode: the value is the protobuf message, the attributes are
headers (``ce_*``, UTF-8, empty ones left out), and the record's key is the partition key
(https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/kafka-protocol-binding.md). In a journal both
halves are one ``protos.events.v1.Envelope``.

Everything that reads raises ``Poison`` with the reason, and nothing else, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from protos.events.v1 import envelope_pb2
from shared import json_codec, proto_codec, timestamps
from shared.bus import Record
from shared.errors import Poison
from shared.events import EVENT_TYPES, Envelope, Event
from shared.json_codec import check_keys, from_plain, to_plain

CONTENT_TYPE = b"application/protobuf"
SPEC_VERSION = "1.0"

_TYPES: dict[str, type[Event]] = {f"{proto_codec.PACKAGE}.{owner.__name__}": owner for owner in EVENT_TYPES}
_REQUIRED = ("id", "source", "subject", "partition_key", "correlation_id")
_TEXT = (*_REQUIRED, "causation_id", "lease", "traceparent")
_JSON_KEYS = ("id", "type", *_TEXT[1:], "time_ns", "attempt", "event")
_HEADERS = {name: b"traceparent" if name == "traceparent" else f"ce_{name.replace('_', '')}".encode() for name in _TEXT}
_HEADER_NAMES = {name: header.decode() for name, header in _HEADERS.items()}


def type_name(event: Event) -> str:
    """``ce_type`` of an event: the full name of its message."""
    return f"{proto_codec.PACKAGE}.{type(event).__name__}"


def encode(envelope: Envelope) -> Record:
    """A bus record.

    Raises:
        ValueError: a required attribute or identifier is empty, or a value does not fit its field.
    """
    _check(envelope)
    headers = {_HEADER_NAMES[name]: value.encode() for name in _TEXT if (value := getattr(envelope, name))}
    headers["ce_specversion"] = SPEC_VERSION.encode()
    headers["ce_type"] = type_name(envelope.event).encode()
    headers["ce_time"] = timestamps.to_text(envelope.time_ns).encode()
    headers["ce_attempt"] = str(envelope.attempt).encode()
    headers["content-type"] = CONTENT_TYPE
    return Record(key=envelope.partition_key, value=_data(envelope.event), headers=headers)


def decode(record: Record) -> Envelope:
    """The envelope of a bus record; headers it does not know are ignored.

    Raises:
        Poison: with the reason.
    """
    headers = record.headers
    if headers.get("content-type") != CONTENT_TYPE:
        raise Poison(f"header content-type is {headers.get('content-type')!r}, expected {CONTENT_TYPE!r}")
    if _header(headers, "ce_specversion") != SPEC_VERSION:
        raise Poison(f"header ce_specversion is not {SPEC_VERSION}")
    texts = {name: _header(headers, _HEADER_NAMES[name], required=name in _REQUIRED) for name in _TEXT}
    if texts["partition_key"] != record.key:
        raise Poison(f"the record's key {record.key!r} is not its header ce_partitionkey {texts['partition_key']!r}")
    return Envelope(
        event=_event(_header(headers, "ce_type"), record.value),
        time_ns=_time(_header(headers, "ce_time")),
        attempt=_attempt(_header(headers, "ce_attempt", required=False) or "1"),
        **texts,
    )


def pack(envelope: Envelope) -> bytes:
    """One self-contained message, for journals. Equal envelopes give equal bytes. Raises as ``encode`` does."""
    _check(envelope)
    texts = {name: getattr(envelope, name) for name in _TEXT}
    message = envelope_pb2.Envelope(
        type=type_name(envelope.event),
        time_ns=envelope.time_ns,
        attempt=envelope.attempt,
        data=_data(envelope.event),
        **texts,
    )
    return message.SerializeToString(deterministic=True)


def unpack(data: bytes) -> Envelope:
    """The envelope that ``pack`` wrote.

    Raises:
        Poison: with the reason.
    """
    message = envelope_pb2.Envelope()
    _parse(message, data)
    texts = {name: getattr(message, name) for name in _TEXT}
    for name in _REQUIRED:
        if not texts[name]:
            raise Poison(f"envelope.{name} is empty")
    return Envelope(
        event=_event(message.type, message.data),
        time_ns=_in_range("envelope.time_ns", message.time_ns, 0),
        attempt=_in_range("envelope.attempt", message.attempt if message.HasField("attempt") else 1, 1),
        **texts,
    )


def to_json(envelope: Envelope) -> dict[str, Any]:
    """Plain values of an envelope, the event's fields under ``event``. Raises as ``encode`` does."""
    _check(envelope)
    plain: dict[str, Any] = {name: getattr(envelope, name) for name in _TEXT}
    plain["type"] = type_name(envelope.event)
    plain["time_ns"], plain["attempt"] = envelope.time_ns, envelope.attempt
    plain["event"] = to_plain(envelope.event)
    return plain


def from_json(plain: Mapping[str, Any]) -> Envelope:
    """The envelope that ``to_json`` wrote, read strictly.

    Raises:
        Poison: an unknown key, a missing key or a bad value, named by its path.
    """
    check_keys(plain, _JSON_KEYS, "envelope")
    owner = _owner(json_codec.text(plain["type"], "envelope.type"))
    texts = {name: json_codec.text(plain[name], f"envelope.{name}") for name in _TEXT}
    for name in _REQUIRED:
        if not texts[name]:
            raise Poison(f"envelope.{name} is empty")
    return Envelope(
        event=from_plain(owner, plain["event"], owner.__name__),
        time_ns=_in_range("envelope.time_ns", json_codec.integer(plain["time_ns"], "envelope.time_ns"), 0),
        attempt=_in_range("envelope.attempt", json_codec.integer(plain["attempt"], "envelope.attempt"), 1),
        **texts,
    )


def _check(envelope: Envelope) -> None:
    for name in _REQUIRED:
        if not getattr(envelope, name):
            raise ValueError(f"envelope.{name} is empty")
    if envelope.time_ns < 0 or envelope.attempt < 1:
        raise ValueError(f"envelope has time_ns {envelope.time_ns} and attempt {envelope.attempt}")


def _data(event: Event) -> bytes:
    return proto_codec.to_message(event).SerializeToString(deterministic=True)


def _event(name: str, data: bytes) -> Event:
    owner: Any = _owner(name)
    if not data:
        raise Poison(f"{name} without a value")  # a tombstone; no fact is empty
    message = proto_codec.message_class(owner)()
    _parse(message, data)
    event: Event = proto_codec.from_message(owner, message)
    return event


def _owner(name: str) -> type[Event]:
    owner = _TYPES.get(name)
    if owner is None:
        raise Poison(f"unknown event type {json_codec.shown(name)}")
    return owner


def _parse(message: Any, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise Poison(f"bytes are not a {message.DESCRIPTOR.full_name}: {error}") from error


def _header(headers: Mapping[str, bytes], name: str, *, required: bool = True) -> str:
    raw = headers.get(name, b"")
    if required and not raw:
        raise Poison(f"header {name} is missing")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Poison(f"header {name} is not UTF-8") from error


def _time(text: str) -> int:
    try:
        return timestamps.from_text(text)
    except ValueError as error:
        raise Poison(f"header ce_time: {error}") from error


def _attempt(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Poison(f"header ce_attempt is {text!r}")
    return _in_range("header ce_attempt", int(text), 1)


def _in_range(where: str, value: int, low: int) -> int:
    if value < low:
        raise Poison(f"{where} is {value}")
    return value
