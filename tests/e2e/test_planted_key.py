"""A planted key goes through a whole search, at an endpoint that repeats it everywhere, and stays nowhere."""

from __future__ import annotations

import base64
import binascii
import re
import sqlite3
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import ROOT, kernelevolve, last_object

from tests.fakes.echoing_endpoint import Echo, echoing_endpoint

pytestmark = [pytest.mark.serial, pytest.mark.timeout(600)]

KEY = "ke/Planted+0123456789/abcdef=="
"""With letters that JSON, URLs and pages may write otherwise."""
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


@dataclass(frozen=True)
class Place:
    """Where everything goes that a process writes: ``said`` is what the commands printed."""

    root: Path
    said: Path
    echo: Echo

    @property
    def run(self) -> Path:
        return self.root / "run"

    def do(self, *arguments: object, codes: tuple[int, ...] = (0,)):
        settings = SETTINGS | {"MODEL_ENDPOINTS": str(self.root / "models.toml"), "TMPDIR": str(self.root / "tmp")}
        done = kernelevolve(*arguments, home=self.root, settings=settings)
        with self.said.open("a", encoding="utf-8") as said:
            said.write(f"{arguments}\n{done.stdout}{done.stderr}")
        assert done.returncode in codes, done.stderr
        return done


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A search that ended, and every command that reads it."""
    root = tmp_path_factory.mktemp("planted")
    (root / "tmp").mkdir()
    with echoing_endpoint(VARIABLE) as echo:
        place = Place(root, root / "said.txt", echo)
        (root / "models.toml").write_text(ENDPOINTS.format(url=echo.url, variable=VARIABLE))
        place.do("optimize", OPERATOR, "--evaluations", 1, "--out", place.run, "--json", codes=(0, 1))
        place.do("models", "list")
        place.do("models", "check", "--write", root / "checked.toml", codes=(0, 1))
        place.do("models", "check", "--json", codes=(0, 1))
    place.do("report", place.run)
    place.do("replay", place.run)
    place.do("export", place.run, "--sft", root / "sft.jsonl", "--preferences", root / "preferences.jsonl")
    shown = place.do("explain", place.run).stdout
    for name in set(re.findall(r"\b[0-9a-f]{8}\b", shown)):
        place.do("explain", place.run, name, "--prompt", codes=(0, 2))
    return place


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
    return {
        f"{where}: …{text[max(0, text.find(needle.encode()) - 60) :][:160]!r}"
        for where, raw in texts(root)
        for text in unpacked(raw)
        for needle in needles
        if needle.encode() in text
    }


def test_the_search_met_everything_that_the_endpoint_repeats(place):
    result = last_object(place.do("resume", place.run, "--json", codes=(0, 1)))

    assert place.echo.echoed > 8
    assert place.echo.without == 0
    assert result["evaluations"] == 1
    assert result["statuses"].get("PASSED"), result  # of kernels that would fail if they saw the variable
    assert holding(place.run, "for …")  # kept, without the key
    assert holding(place.root / "tmp", "'OMP_NUM_THREADS'"), "the operator's text wrote nothing down"


def test_the_key_is_nowhere(place):
    (place.root / "models.toml").unlink(missing_ok=True)

    assert holding(place.root, KEY, KEY.replace("/", "\\/"), KEY[:-2]) == set()
    assert holding(place.root / "tmp", VARIABLE) == set()
