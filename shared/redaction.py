"""Taking secrets out of text that people or programs will read: log lines above all.

What is secret is known by the name of its variable, by its place in a text (``user:password@`` in a URL, ``Bearer …``),
or because whoever read it said so (``never_show``). That last is one register for the process: any library may log
what any part of the program was told.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from urllib.parse import quote

HIDDEN = "…"
SECRET_NAMES = ("TOKEN", "PASSWORD", "SECRET", "API_KEY")
"""Endings of environment variables whose values are never written."""
SECRET_LENGTH_MIN = 6
"""A shorter value would hide ordinary words."""
_USER_IN_URL = re.compile(r"(?<=://)[^\s/@]+@")
_BEARER = re.compile(r"(?i)(?<=bearer )\S+")

_never_shown: set[str] = set()


def never_show(value: str) -> None:
    """No log line of this process shows ``value`` from now on, whatever name it came under."""
    if len(value) >= SECRET_LENGTH_MIN:
        _never_shown.add(value)


def holds_a_secret(text: str) -> bool:
    """Whether ``text`` has in it what must never be shown."""
    return any(value in text for value in _never_shown)


def spellings(value: str) -> frozenset[str]:
    """``value`` as JSON, addresses and pages may write it."""
    quoted = json.dumps(value, ensure_ascii=False)[1:-1]
    return frozenset((value, quoted, quoted.replace("/", "\\/"), quote(value, safe=""), html.escape(value)))


class Redaction:
    """Takes secrets out of text: credentials in URLs, bearer tokens, values of variables named as secrets, and what
    ``never_show`` was told, also afterwards.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._named = {
            value
            for name, value in environment.items()
            if name.upper().endswith(SECRET_NAMES) and len(value) >= SECRET_LENGTH_MIN
        }
        self._known: frozenset[str] = frozenset()
        self._spelled: list[str] = []

    def __call__(self, text: str) -> str:
        for secret in self._secrets():
            text = text.replace(secret, HIDDEN)
        return _BEARER.sub(HIDDEN, _USER_IN_URL.sub(f"{HIDDEN}@", text))

    def _secrets(self) -> list[str]:
        """The longest first: one may hold another."""
        known = frozenset(self._named | _never_shown)
        if known != self._known:
            self._known = known
            self._spelled = sorted({each for value in known for each in spellings(value)}, key=len, reverse=True)
        return self._spelled
