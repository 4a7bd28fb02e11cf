"""Bearer tokens: random, named, with a role; a file keeps their hashes only.

::

    [tokens.ci]
    role = "submit"
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

A token carries 256 random bits, so a fast hash keeps it: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import tomllib
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from shared.errors import UserError

PREFIX = "ke_"
"""Lets secret scanners and people recognise one."""
RANDOM_BYTES = 32


class Role(IntEnum):
    """Each may do what those before it may."""

    READ = 1
    SUBMIT = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


ROLES = tuple(role.word for role in Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A token that the server accepts, without the token."""

    name: str
    role: Role
    sha256: str


def mint() -> str:
    """A new token. Whoever asked is the only one to see it."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def fingerprint(token: str) -> str:
    """What the file keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def role_of(word: str) -> Role:
    """Raises ``ValueError`` for a word that names no role."""
    if word not in ROLES:
        raise ValueError(f"role is {word!r}, expected one of {', '.join(ROLES)}")
    return Role[word.upper()]


def find(known: tuple[Known, ...], token: str) -> Known | None:
    """The known token that ``token`` is. Takes as long whichever it is, so that time tells nothing."""
    presented, found = fingerprint(token), None
    for candidate in known:
        if hmac.compare_digest(candidate.sha256, presented):
            found = candidate
    return found


def table(name: str, role: Role, sha256: str) -> str:
    """The lines of the file for one token."""
    return f'[tokens.{name}]\nrole = "{role.word}"\nsha256 = "{sha256}"\n'


def load(path: Path) -> tuple[Known, ...]:
    """The tokens of a file.

    Raises:
        UserError: unreadable, not TOML, or an entry that is not a token; names it.
    """
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except ValueError as error:  # tomllib's and UTF-8's errors
        raise UserError(f"is not TOML: {error}", where=str(path)) from error
    entries = body.get("tokens")
    if set(body) != {"tokens"} or not isinstance(entries, dict) or not entries:
        raise UserError(
            "holds no [tokens.NAME] tables, or something else besides",
            where=str(path),
            hint="`kernelevolve token new --role submit --name ci` prints one",
        )
    try:
        return tuple(_known(name, entry) for name, entry in entries.items())
    except ValueError as error:
        raise UserError(str(error), where=str(path)) from error


def _known(name: str, entry: Any) -> Known:
    if not isinstance(entry, dict) or set(entry) != {"role", "sha256"}:
        raise ValueError(f"tokens.{name} must have exactly role and sha256")
    if not re.fullmatch("[0-9a-f]{64}", str(entry["sha256"])):
        raise ValueError(f"tokens.{name}.sha256 is not a SHA-256 in lower-case hexadecimal digits")
    try:
        return Known(name=name, role=role_of(str(entry["role"])), sha256=str(entry["sha256"]))
    except ValueError as error:
        raise ValueError(f"tokens.{name}: {error}") from error
