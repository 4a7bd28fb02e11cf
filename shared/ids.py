"""Derived identifiers and seeded random streams (pure).

Nothing in the system draws an identifier. An id is the hash of what caused the thing and of what kind of thing it is,
so the same cause gives the same id on every retry, in every process and in every replay; that is what makes "publish
again after a crash" harmless. The one exception is the id of a search, which its submitter chooses.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence

ID_LENGTH = 16
"""Hex digits kept of a SHA-256: 64 bits, collision odds below 1e-9 for 100,000 ids."""


def content_hash(data: bytes) -> str:
    """Full SHA-256 of ``data`` in lower-case hex (64 characters): the name of a blob."""
    return hashlib.sha256(data).hexdigest()


def derive(*parts: str | int) -> str:
    """Identifier derived from ``parts``, in order; parts cannot run into each other.

    >>> derive("a", "bc") == derive("ab", "c")
    False
    """
    text = json.dumps([str(part) for part in parts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


def is_one(text: str) -> bool:
    """Whether ``text`` has the form of a derived identifier."""
    return len(text) == ID_LENGTH and all(char in "0123456789abcdef" for char in text)


def canonical_json(value: Mapping[str, object] | Sequence[object]) -> bytes:
    """JSON with sorted keys and no spaces, so that equal values have equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def stream(seed: int, *purpose: str | int) -> random.Random:
    """Random stream of its own for one purpose, e.g. ``stream(seed, node_id, "mutate")``.

    Never share a generator between decisions: the position of a shared one depends on how much history came before,
    and a replay that differs in one place would then differ everywhere.
    """
    return random.Random(int(derive(seed, *purpose), 16))  # noqa: S311 - reproducible, not secret
