"""What the build box hands out, read as hostile (pure): a fixed binary form of shared libraries, nothing else.

``KEEXT001``, a count, then for each library its key (64 hexadecimal digits), the lengths of name and data, and those.
"""

from __future__ import annotations

import re
import struct
from typing import BinaryIO

MAGIC = b"KEEXT001"
HEADER = struct.Struct("<8sI")
ENTRY = struct.Struct("<64sHQ")
EXTENSIONS_MAX = 16
LIBRARY_BYTES_MAX = 64 << 20
ARCHIVE_BYTES_MAX = 128 << 20
KEY, NAME = re.compile(rb"[0-9a-f]{64}"), re.compile(rb"[A-Za-z_][A-Za-z0-9_]{0,99}")
ELF = b"\x7fELF\x02\x01\x01"
"""64 bits, little-endian, current (System V gABI 4.1)."""


class RefusedArchive(ValueError):
    """It is not of that form; the message says where it departs from it."""


def read(file: BinaryIO) -> dict[str, bytes]:
    """``<key>.<name>.so`` -> library.

    Raises:
        RefusedArchive: what was handed out is of another form.
    """
    header = file.read(HEADER.size)
    if len(header) < HEADER.size or not header.startswith(MAGIC):
        raise RefusedArchive("the build handed out no extensions")
    _, count = HEADER.unpack(header)
    if count > EXTENSIONS_MAX:
        raise RefusedArchive(f"the build handed out {count} extensions, more than {EXTENSIONS_MAX}")
    found = {}
    for _ in range(count):
        entry = file.read(ENTRY.size)
        if len(entry) < ENTRY.size:
            raise RefusedArchive("the extensions that the build handed out break off")
        key, named, size = ENTRY.unpack(entry)
        name = file.read(named)
        if not KEY.fullmatch(key) or not NAME.fullmatch(name):
            raise RefusedArchive("the build handed out an extension without a proper name")
        library = file.read(min(size, LIBRARY_BYTES_MAX))
        if len(library) != size or not library.startswith(ELF):
            raise RefusedArchive(
                f"extension `{name.decode()}` is no shared library of at most {LIBRARY_BYTES_MAX >> 20} MiB"
            )
        found[f"{key.decode()}.{name.decode()}.so"] = library
    return found
