"""The exported log of a search: one self-contained ``*.kelog`` file.

JSON lines: a header (line 1, with the counts of what follows), one line per journal entry (entry ``n`` is line
``n + 2``), then one line per blob, base64. Every line carries a checksum of its own content under ``check``.

A log may be edited on purpose, and a replay must then say where it diverges; so a line that is well-formed but does
not match its checksum is reported in ``Log.altered``, and only what cannot be read at all is a ``LogError``. A blob
that does not match its name cannot be used and is an error.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from shared import ids, wire
from shared.errors import LogError, Poison
from shared.json_codec import check_keys, integer, shown, text
from shared.store import JournalEntry

FORMAT = 1
MAGIC = "kernelevolve log"
CHECK_LENGTH = 16
"""Hex digits kept of a line's SHA-256: finds bit rot and edits, proves nothing against an adversary."""
BYTES_MAX = 1 << 30

_HEADER_KEYS = ("kind", "format", "stream", "entries", "blobs")
_ENTRY_KEYS = ("kind", "seq", "event", "commands", "sent", "digest")
_BLOB_KEYS = ("kind", "name", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What a file holds. ``altered`` are the numbers of lines, from 1, that no longer match their checksum."""

    stream: str
    entries: tuple[JournalEntry, ...]
    blobs: Mapping[str, bytes]
    altered: tuple[int, ...]


def write(path: Path, entries: Sequence[JournalEntry], blobs: Mapping[str, bytes], *, stream: str) -> None:
    """Write the file in one step: it is there whole, or as it was before.

    Raises:
        LogError: the folder cannot be written.
        ValueError: an entry's ``event_id`` is not that of its event, or a blob does not match its name.
    """
    lines = "".join(text_lines(entries, blobs, stream=stream))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise LogError(f"cannot be written: {error.strerror}", where=str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def text_lines(entries: Sequence[JournalEntry], blobs: Mapping[str, bytes], *, stream: str) -> Iterator[str]:
    """The file's lines, each with its line end. Raises ``ValueError`` as ``write`` does."""
    for line in _lines(entries, blobs, stream):
        yield _checked(line) + "\n"


def read(path: Path) -> Log:
    """Read a file that ``write`` made, or that somebody edited since.

    Raises:
        LogError: missing, unreadable, of another format, truncated, or with a line that cannot be understood; names
            the line.
    """
    return _Reader(path).read()


def _lines(entries: Sequence[JournalEntry], blobs: Mapping[str, bytes], stream: str) -> Iterator[dict[str, Any]]:
    yield {"kind": MAGIC, "format": FORMAT, "stream": stream, "entries": len(entries), "blobs": len(blobs)}
    for entry in entries:
        event = wire.unpack(entry.event)
        if event.id != entry.event_id:
            raise ValueError(f"entry {entry.seq} is filed under {entry.event_id}, its event is {event.id}")
        yield {
            "kind": "entry",
            "seq": entry.seq,
            "event": wire.to_json(event),
            "commands": [wire.to_json(wire.unpack(command)) for command in entry.commands],
            "sent": entry.sent,
            "digest": entry.digest,
        }
    for name, data in sorted(blobs.items()):
        if ids.content_hash(data) != name:
            raise ValueError(f"blob {name} does not match its name")
        yield {"kind": "blob", "name": name, "data": base64.b64encode(data).decode()}


def _checked(line: dict[str, Any]) -> str:
    return ids.canonical_json({**line, "check": _checksum(line)}).decode()


def _checksum(line: Mapping[str, Any]) -> str:
    return ids.content_hash(ids.canonical_json(line))[:CHECK_LENGTH]


class _Reader:
    """Goes through a file line by line and knows where it is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0
        self._altered: list[int] = []

    def read(self) -> Log:
        lines = iter(self._load().splitlines())
        header = self._next(lines)
        self._check_header(header)
        entries = tuple(self._entry(self._next(lines), seq) for seq in range(header["entries"]))
        blobs = dict(self._blob(self._next(lines)) for _ in range(header["blobs"]))
        if next(lines, None) is not None:
            self._number += 1
            self._fail("is past the end that line 1 announces")
        return Log(stream=header["stream"], entries=entries, blobs=blobs, altered=tuple(self._altered))

    def _load(self) -> bytes:
        try:
            if self._path.stat().st_size > BYTES_MAX:
                raise LogError(f"is larger than {BYTES_MAX >> 20} MiB", where=str(self._path))
            return self._path.read_bytes()
        except OSError as error:
            raise LogError(f"cannot be read: {error.strerror}", where=str(self._path)) from error

    def _next(self, lines: Iterator[bytes]) -> dict[str, Any]:
        self._number += 1
        raw = next(lines, None)
        if raw is None:
            self._fail("is missing: the file is cut off" if self._number > 1 else "is missing: the file is empty")
        line = self._parse(raw)
        check = line.pop("check", None)
        try:
            matches = check == _checksum(line)
        except UnicodeEncodeError:  # half a surrogate pair: whoever reads the field says which one
            matches = False
        if not matches:
            self._altered.append(self._number)
        return line

    def _parse(self, raw: bytes) -> dict[str, Any]:
        try:
            line = json.loads(raw, object_pairs_hook=_once, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            self._fail(f"is not JSON: {error}")
        if not isinstance(line, dict):
            self._fail("is not a JSON object")
        return line

    def _check_header(self, header: dict[str, Any]) -> None:
        if header.get("kind") != MAGIC:
            self._fail("is not the header of a kernelevolve log")
        if header.get("format") != FORMAT:
            self._fail(f"says format {shown(header.get('format'))}; this version reads format {FORMAT}")
        try:
            check_keys(header, _HEADER_KEYS, "header")
            text(header["stream"], "header.stream")
            for name in ("entries", "blobs"):
                if integer(header[name], f"header.{name}") < 0:
                    self._fail(f"header.{name} is negative")
        except Poison as error:
            self._fail(str(error), error)

    def _entry(self, line: dict[str, Any], seq: int) -> JournalEntry:
        try:
            check_keys(line, _ENTRY_KEYS, "entry")
            if line["kind"] != "entry" or integer(line["seq"], "entry.seq") != seq:
                self._fail(f"should be entry {seq}, but is {shown(line['kind'])} {shown(line['seq'])}")
            if not isinstance(line["sent"], bool) or not isinstance(line["commands"], list):
                self._fail("entry.sent or entry.commands has the wrong type")
            event = wire.from_json(line["event"])
            return JournalEntry(
                seq=seq,
                event_id=event.id,
                event=wire.pack(event),
                commands=tuple(wire.pack(wire.from_json(command)) for command in line["commands"]),
                sent=line["sent"],
                digest=text(line["digest"], "entry.digest"),
            )
        except Poison as error:
            self._fail(str(error), error)

    def _blob(self, line: dict[str, Any]) -> tuple[str, bytes]:
        try:
            check_keys(line, _BLOB_KEYS, "blob")
            if line["kind"] != "blob":
                self._fail(f"should be a blob, but is {shown(line['kind'])}")
            name = text(line["name"], "blob.name")
            data = base64.b64decode(text(line["data"], "blob.data"), validate=True)
        except (Poison, binascii.Error, ValueError) as error:
            self._fail(str(error), error)
        if ids.content_hash(data) != name:
            self._fail(f"blob {shown(name)} does not match its name")
        return name, data

    def _fail(self, what: str, cause: Exception | None = None) -> NoReturn:
        raise LogError(what, where=f"{self._path}:{self._number}") from cause


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    line = dict(pairs)
    if len(line) != len(pairs):
        raise ValueError("a key occurs twice")
    return line


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
