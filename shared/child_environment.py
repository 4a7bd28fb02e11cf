"""The environment of a process that runs an operator's text: whoever may submit must not read the service's secrets."""

from __future__ import annotations

from collections.abc import Mapping

SECRET_ENDINGS = ("_URL", "TOKEN", "TOKENS", "PASSWORD", "SECRET", "KEY", "CREDENTIALS")
"""Addresses are among them: they carry passwords."""


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` without variables that name addresses or credentials."""
    return {name: value for name, value in environment.items() if not name.upper().endswith(SECRET_ENDINGS)}
