"""The text of ``vecmath.hpp`` with its parts pasted in: what an emitted translation unit starts with (pure)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_LOCAL_INCLUDE = re.compile(r'^#include "(vec\w*\.hpp)"\n', re.MULTILINE)


@cache
def header(vector_bits: int) -> str:
    """C++ text defining the vector types of ``vector_bits`` (512, 256 or 128) and the functions on them.

    Raises:
        ValueError: another width.
    """
    if vector_bits not in (512, 256, 128):
        raise ValueError(f"vectors have 512, 256 or 128 bits, not {vector_bits}")
    seen: set[str] = set()

    def paste(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text = files(__package__).joinpath(name).read_text(encoding="utf-8").replace("#pragma once\n", "")
        return _LOCAL_INCLUDE.sub(lambda include: paste(include[1]), text)

    return f"#define KE_VECTOR_BITS {vector_bits}\n" + paste("vecmath.hpp")
