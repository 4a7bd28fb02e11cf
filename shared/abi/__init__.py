"""The C ABI every native kernel is written against: ``ke_abi.h`` and its name on disk."""

from __future__ import annotations

from importlib.resources import files

HEADER_NAME = "ke_abi.h"


def header() -> str:
    """Text of ``ke_abi.h``."""
    return files(__package__).joinpath(HEADER_NAME).read_text(encoding="utf-8")
