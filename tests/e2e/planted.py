"""A key under a name that does not tell, and the search for it in everything that lies in a directory."""

from __future__ import annotations

import base64
import binascii
import re
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from command_line import ROOT

from tests.fakes.echoing_endpoint import escaped

KEY = "ke/Planted+0123456789/abcdef=="
"""With letters that JSON, URLs and pages may write otherwise."""
SPELLINGS = (KEY, KEY.replace("/", "\\/"), escaped(KEY), KEY[:-2])
VARIABLE = "MY_THING"
"""No name that says what it holds."""
OPERATOR = ROOT / "tests" / "operators" / "tells_its_environment.py"
TOKEN = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}")
UNPACKED_BYTES_MAX = 4 << 20
ENDPOINTS = """
[endpoints.echo]
url = "{url}"
model = "m"
key_env = "{variable}"
prices = {{ input = 1_000_000, output = 1_000_000 }}
"""
SETTINGS = {
    VARIABLE: KEY,
    "LOG_LEVEL": "DEBUG",
    "MODEL_ASKING": "whole",
    "MODEL_SHARE_PERCENT": "100",
    "MODEL_RETRY_PAUSE_S": "0.01",
    "MODEL_RETRY_ATTEMPTS_MAX": "9",
    "MODEL_RETRY_BILLED_ATTEMPTS_MAX": "9",
}


def texts(root: Path):
    """``(where, bytes)`` of everything under ``root``, as it lies there and as its readers see it."""
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        raw = path.read_bytes()
        yield str(path), raw
        if raw.startswith(b"SQLite format 3"):
            yield from ((f"{path}: {where}", cell) for where, cell in cells(path))


def cells(path: Path):
    with closing(sqlite3.connect(path)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in database.execute(f"SELECT * FROM {table}"):
                yield from ((table, cell if isinstance(cell, bytes) else str(cell).encode()) for cell in row)


def unpacked(raw: bytes):
    """``raw``, and what is packed or encoded in it; compilers' large files are looked at as they are."""
    yield raw
    if len(raw) > UNPACKED_BYTES_MAX:
        return
    view = memoryview(raw)
    for found in TOKEN.finditer(raw):
        try:
            yield base64.b64decode(found[0])
        except binascii.Error:
            continue
    for start in (at.start() for at in re.finditer(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08", raw)):
        try:
            yield zlib.decompressobj(wbits=47).decompress(view[start:], UNPACKED_BYTES_MAX)
        except zlib.error:
            continue


def holding(root: Path, *needles: str) -> set[str]:
    """Where one of ``needles`` lies under ``root``."""
    return {
        f"{where}: …{text[max(0, text.find(needle.encode()) - 60) :][:160]!r}"
        for where, raw in texts(root)
        for text in unpacked(raw)
        for needle in needles
        if needle.encode() in text
    }
