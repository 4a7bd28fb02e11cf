"""Pages of long lists: sizes within bounds, and tokens that only their server reads (pure)."""

from __future__ import annotations

import base64
import binascii

from shared.errors import UserError


def size(requested: int, *, default: int, most: int) -> int:
    """How many items a page gets: ``default`` for 0, never more than ``most``. Raises ``UserError`` for less than 0."""
    if requested < 0:
        raise UserError(f"is {requested}", where="page_size", hint=f"0 means {default}, at most {most}")
    return min(requested or default, most)


def token(key: str) -> str:
    """The token of the page after the item ``key``."""
    return base64.urlsafe_b64encode(key.encode()).decode()


def key(token: str) -> str:
    """The item that the page of ``token`` comes after; empty for the first page.

    Raises:
        UserError: not a token of ``token``'s making.
    """
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error) as error:
        raise UserError("is not one that a list returned", where="page_token") from error
