"""Reading foreign JSON strictly: what is wrong is said in one line, with the place (pure).

Fields that a format does not name are passed over, as both formats do; those that it needs must be there, and be of
its type.
"""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Mapping
from typing import Any

from shared.errors import UserError

BYTES_MAX = 4 << 20
"""Of one JSON text: as much as a kernel's source may have."""
SHOWN_MAX = 60
NAME_CHARS_MAX = 200

_KINDS: dict[type, str] = {str: "a string", int: "an integer", bool: "true or false", dict: "an object", list: "a list"}


def parse(data: bytes | str, where: str) -> dict[str, Any]:
    """The JSON object in ``data``.

    Raises:
        UserError: too large, not UTF-8, not JSON (with line and column), or no object.
    """
    if len(data) > BYTES_MAX:
        raise UserError(f"is larger than {BYTES_MAX >> 20} MiB", where=where)
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        value = json.loads(text)
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 (byte {error.start})", where=where) from error
    except json.JSONDecodeError as error:
        raise UserError(f"is not JSON: {error.msg}", where=f"{where}:{error.lineno}:{error.colno}") from error
    except RecursionError as error:
        raise UserError("is not JSON: nested too deeply", where=where) from error
    except ValueError as error:  # a number of more digits than Python converts
        raise UserError("is not JSON: a number has more digits than can be read", where=where) from error
    made: dict[str, Any] = an(dict, value, where)
    return made


def an(kind: type, value: Any, where: str) -> Any:
    """``value``, which must be a ``kind``. Strings must have a UTF-8 form: JSON can spell half a surrogate pair.

    Raises:
        UserError: it is something else.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UserError(f"is {shown(value)}, not {_KINDS[kind]}", where=where)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UserError(f"is not UTF-8 (character {error.start})", where=where) from error
    return value


def need(record: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    """The field ``name``, which must be there.

    Raises:
        UserError: it is missing, null, or of another type; an empty string or list is as good as none.
    """
    if record.get(name) is None:
        raise UserError(f"has no `{name}`", where=where)
    value = an(kind, record[name], f"{where}: {name}")
    if value in ("", []):
        raise UserError("is empty", where=f"{where}: {name}")
    return value


def maybe(record: Mapping[str, Any], name: str, kind: type, where: str, default: Any) -> Any:
    """The field ``name``, or ``default`` where it is missing or null.

    Raises:
        UserError: it is of another type.
    """
    return default if record.get(name) is None else an(kind, record[name], f"{where}: {name}")


def scalar(value: Any, where: str) -> int | float | bool:
    """A number or truth value.

    Raises:
        UserError: something else, or a number that is none.
    """
    if not isinstance(value, int | float):
        raise UserError(f"is {shown(value)}, not a number or a truth value", where=where)
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"is {value}, which no kernel can be judged with", where=where)
    return value


def names(record: Mapping[str, Any], where: str) -> None:
    """Refuse a key that cannot be the name of a Python argument.

    Raises:
        UserError: naming it.
    """
    for name in record:
        if not name.isidentifier() or keyword.iskeyword(name) or name == "self":
            raise UserError(f"`{printable(name)}` cannot name an argument", where=where)


def one_line(text: str, where: str) -> None:
    """Refuse a name that no line of a table could hold.

    Raises:
        UserError: more than a line, or too long a one.
    """
    if not text.isprintable() or len(text) > NAME_CHARS_MAX:
        raise UserError(f"is not one line of at most {NAME_CHARS_MAX} characters", where=where)


def shown(value: Any) -> str:
    """``value`` as an error shows it: on one line, and not all of it."""
    return printable(json.dumps(value, ensure_ascii=False))


def printable(text: str) -> str:
    """``text`` on one line, cut."""
    flat = "".join(c if c.isprintable() else "?" for c in text)
    return flat if len(flat) <= SHOWN_MAX else f"{flat[:SHOWN_MAX]}…"
