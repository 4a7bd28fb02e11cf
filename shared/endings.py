"""Searches that have ended, as a hint in the cache: nobody needs to work for them any more.

A hint only: a cache that is gone or has forgotten costs time, and what is done for an ended search is ignored anyway.
"""

from __future__ import annotations

import logging

from shared.cache import Cache
from shared.errors import Unavailable

KEPT_S = 24 * 3600.0
"""Longer than any request waits."""

log = logging.getLogger(__name__)


async def note(cache: Cache, search_id: str) -> None:
    """The search has ended."""
    try:
        await cache.put(_key(search_id), b"1", ttl_s=KEPT_S)
    except Unavailable as error:
        log.info("workers are not told that search %s has ended: %s", search_id, error)


async def is_noted(cache: Cache, search_id: str) -> bool:
    """Whether the search is known to have ended."""
    try:
        return await cache.get(_key(search_id)) is not None
    except Unavailable:
        return False


def _key(search_id: str) -> str:
    return f"search.ended/{search_id}"
