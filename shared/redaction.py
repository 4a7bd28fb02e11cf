"""Taking secrets out of text that people or programs will read: log lines above all.

What is secret is known by the name of its variable, by its place in a text (``user:password@`` in a URL, ``Bearer …``),
or because whoever read it said so (``never_show``). That last is one register for the process: any library may log
what any part of the program was told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from html.entities import html5

HIDDEN = "…"
SECRET_NAMES = ("TOKEN", "PASSWORD", "SECRET", "API_KEY")
"""Endings of environment variables whose values are never written."""
SECRET_LENGTH_MIN = 6
"""A shorter value would hide ordinary words."""
_USER_IN_URL = re.compile(r"(?<=://)[^\s/@]+@")
_BEARER = re.compile(r"(?i)(?<=bearer )\S{8,}")
"""Shorter ones are words: "the call carries no bearer token"."""
_PLAIN = re.compile(r"[0-9A-Za-z]+")
_UNITS = re.compile(r"\\+|.", re.DOTALL)
"""Characters; backslashes in a row together, because any number may stand for them."""
_SPELLING_CHARS = 12
"""Of one character, as long as anybody writes it."""
_BEGUN = re.compile(r"\\{1,8}(?:u[0-9a-fA-F]{0,3})?|%(?:25){0,3}[0-9a-fA-F]?|&(?:#?\w{0,8})?")
"""The beginning of a character's spelling, where a text was cut within it."""

_never_shown: set[str] = set()


def never_show(value: str) -> None:
    """No log line of this process shows ``value`` from now on, whatever name it came under."""
    if len(value) >= SECRET_LENGTH_MIN:
        _never_shown.add(value)


def holds_a_secret(text: str) -> bool:
    """Whether ``text`` has in it what must never be shown."""
    return any(Spelled.of(value).stands_in(text) for value in _never_shown)


class Spelled:
    """A secret in every way in which JSON, addresses and pages may write it.

    Letters and digits of ASCII stand for themselves everywhere; each other character may be written as it is, behind
    backslashes, as ``\\u002f``, ``%2F`` or ``&#47;``, in capitals or not, and one text may mix them. Text that was
    quoted several times has several backslashes, or percent signs that are written as ``%25``.
    """

    def __init__(self, value: str) -> None:
        ways = [_ways(each[0]) for each in _UNITS.finditer(value)]
        self._pattern, self._each = re.compile("".join(ways)), [re.compile(way) for way in ways]
        self._plain = max(_PLAIN.findall(value), key=len, default="")
        """In every spelling: to find nothing in a long text takes next to no time."""

    @staticmethod
    @lru_cache(maxsize=256)
    def of(value: str) -> Spelled:
        return Spelled(value)

    def stands_in(self, text: str) -> bool:
        return self._plain in text and self._pattern.search(text) is not None

    def taken_out(self, text: str) -> str:
        """``text`` with ``HIDDEN`` in its place."""
        return self._pattern.sub(HIDDEN, text) if self._plain in text else text

    def begun_at(self, text: str, shown_min: int) -> int:
        """Where ``text`` ends with the beginning of it, ``shown_min`` characters at least; -1 where it does not."""
        each = self._each
        for start in range(max(0, len(text) - _SPELLING_CHARS * len(each)), len(text)):
            at, shown = start, 0
            while shown < len(each) and (found := each[shown].match(text, at)):
                at, shown = found.end(), shown + 1
            if shown >= shown_min and (at == len(text) or _BEGUN.fullmatch(text, at)):
                return start
        return -1


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
        self._spelled: list[Spelled] = []

    def __call__(self, text: str) -> str:
        for secret in self._secrets():
            text = secret.taken_out(text)
        return _BEARER.sub(HIDDEN, _USER_IN_URL.sub(f"{HIDDEN}@", text))

    def _secrets(self) -> list[Spelled]:
        """The longest first: one may hold another."""
        known = frozenset(self._named | _never_shown)
        if known != self._known:
            self._known = known
            self._spelled = [Spelled.of(value) for value in sorted(known, key=len, reverse=True)]
        return self._spelled


def _ways(unit: str) -> str:
    """A pattern of every way to write ``unit`` of a secret."""
    if _PLAIN.fullmatch(unit):
        return unit
    if unit[0] == "\\":
        return rf"(?:\\{{{len(unit)},{8 * len(unit)}}}|(?:{_escaped(unit[0])}){{{len(unit)}}})"
    short = json.dumps(unit)[2:-1] if unit in "\b\f\n\r\t" else ""
    short = rf"|\\{{1,8}}+{short}" if short else ""
    blank = r"|\+" if unit == " " else ""
    return rf"(?:\\{{0,8}}+{re.escape(unit)}|{_escaped(unit)}{short}{blank})"


def _escaped(character: str) -> str:
    """``character`` by its number or name."""
    units, code = character.encode("utf-16-be", "surrogatepass"), ord(character)
    text = "".join(rf"\\{{1,8}}+u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    address = "".join(f"%(?:25){{0,3}}{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    page = rf"&#0{{0,4}}{code};|&#x0{{0,4}}{code:x};"
    names = "".join(f"|&{re.escape(name)}" for name, of in html5.items() if of == character and name.endswith(";"))
    return f"(?i:{text}|{address}|{page}){names}"
