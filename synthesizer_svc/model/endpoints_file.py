"""Endpoints as the TOML that ``configuration.read`` takes; never a key (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any

from synthesizer_svc.model.configuration import EndpointSettings

_OPTIONS = ("url", "model", "server", "key_env", "key_file", "weight", "concurrency", "connect_s", "silence_s", "ca")


def written(endpoints: Sequence[EndpointSettings]) -> str:
    """A file that says all there is about ``endpoints``; unknown prices stay out."""
    return "\n".join(line for endpoint in endpoints for line in _lines(endpoint))


def _lines(endpoint: EndpointSettings) -> Iterator[str]:
    name = f"endpoints.{_key(endpoint.name)}"
    yield f"[{name}]"
    told: dict[str, Any] = {option: getattr(endpoint, option) for option in _OPTIONS}
    told["authentication"] = endpoint.authentication
    if endpoint.plaintext:
        told["allow_plaintext"] = True
    for option, value in told.items():
        if value != "":
            yield f"{option} = {_value(value)}"
    for table, values in (
        ("sampling", endpoint.sampling),
        ("prices", _fields(endpoint.prices)),
        ("capabilities", _fields(endpoint.capabilities)),
    ):
        if values:
            yield f"\n[{name}.{table}]"
            yield from (f"{option} = {_value(value)}" for option, value in values.items())
    yield ""


def _fields(record: Any) -> Mapping[str, Any]:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: value for name, value in values.items() if value is not None}


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, StrEnum):
        return json.dumps(value.value)
    if isinstance(value, tuple):
        return f"[{', '.join(_value(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False)
