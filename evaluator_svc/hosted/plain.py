"""Plain Python values as JSON and back (pure): what a constructor or a forward takes besides tensors.

JSON knows no tuples, no infinities and no element types, so those are tagged dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


class NotPlain(ValueError):
    """A value of a type that is not passed between processes; the message names it."""


def encode(value: Any) -> Any:
    """Raises:
    NotPlain: a tensor, a module, a function or another object.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is list:
        return [encode(one) for one in value]
    if kind is tuple:
        return {"tuple": [encode(one) for one in value]}
    if kind is dict:
        return {"dict": [[encode(key), encode(one)] for key, one in value.items()]}
    if kind.__module__ == "torch" and kind.__name__ == "dtype":
        return {"dtype": str(value).removeprefix("torch.")}
    raise NotPlain(f"a value of type {kind.__module__}.{kind.__qualname__}")


def decode(said: Any, dtype: Callable[[str], Any]) -> Any:
    """The value that ``encode`` was given; ``dtype`` finds an element type by name."""
    if isinstance(said, list):
        return [decode(one, dtype) for one in said]
    if not isinstance(said, dict):
        return said
    ((tag, held),) = said.items()
    if tag == "float":
        return float(held)
    if tag == "dtype":
        return dtype(held)
    if tag == "tuple":
        return tuple(decode(one, dtype) for one in held)
    return {decode(key, dtype): decode(one, dtype) for key, one in held}
