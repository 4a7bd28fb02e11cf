"""How endpoints answer and fail in a dialect, as scripts of the fault server."""

from __future__ import annotations

import asyncio
import itertools
import json

from tests.fakes.dialects import OPENAI, Counts, Dialect, Told, say
from tests.fakes.endpoint_answers import TEXT
from tests.fakes.fault_server import Script, Wire

COUNTS = Counts(read=20, wrote=7, cached=8)
DRIP_S = 0.02
FLOOD = b"x" * 60_000


def good(dialect: Dialect) -> Script:
    """A stream with all that belongs to it."""
    return stream_of(*dialect.stream(TEXT, COUNTS))


def whole(dialect: Dialect, **more: object) -> Told:
    """The same answer as one object."""
    return {**dialect.whole(TEXT, dialect.counted(COUNTS), dialect.stop), **more}


def begun(dialect: Dialect) -> list[Told]:
    """The first events of an answer."""
    return [*dialect.opening(), dialect.piece("he")]


def uncounted(dialect: Dialect) -> list[Told]:
    """An answer to its end, without what it took and without a mark after it."""
    return [*dialect.opening(), dialect.piece(TEXT), *dialect.closing(dialect.stop)]


def stream_of(*events: Told | str, ends: bool = True) -> Script:
    """These events; then the stream ends, or its connection does."""

    async def script(wire: Wire) -> None:
        await wire.begin_stream()
        await say(wire, *events)
        if ends:
            await wire.end_stream()
        else:
            wire.close()

    return script


def then_nothing(*events: Told | str) -> Script:
    """These events on a stream that stays open."""

    async def script(wire: Wire) -> None:
        await wire.begin_stream()
        await say(wire, *events)
        await wire.hang()

    return script


def then_reset(*events: Told | str) -> Script:
    async def script(wire: Wire) -> None:
        await wire.begin_stream()
        await say(wire, *events)
        wire.reset()

    return script


def then_no_chunk(*events: Told | str) -> Script:
    """These events, and then what is no chunk."""

    async def script(wire: Wire) -> None:
        await wire.begin_stream()
        await say(wire, *events)
        await wire.send(b"-5\r\nhello\r\n")
        wire.close()

    return script


def in_pieces(dialect: Dialect, size: int, kind: str = "text/event-stream") -> Script:
    """A good answer cut anywhere, characters included, with comments and all kinds of line ends."""
    lines = [": hello\r\n\r\n"]
    for told, end in zip(dialect.stream(TEXT, COUNTS), itertools.cycle(("\r\n", "\n", "\r")), strict=False):
        data = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
        name = "" if dialect is OPENAI or isinstance(told, str) else f"event: {told['type']}{end}"
        lines.append(f"{name}data: {data}{end}{end}: ping\n\n")
    stream = "".join(lines).encode()

    async def script(wire: Wire) -> None:
        await wire.begin_stream(kind)
        for start in range(0, len(stream), size):
            await wire.chunk(stream[start : start + size])
        await wire.end_stream()

    return script


def repeating(told: Told, pause_s: float = 0.0) -> Script:
    """One event again and again."""

    async def script(wire: Wire) -> None:
        await wire.begin_stream()
        while True:
            await say(wire, told)
            await asyncio.sleep(pause_s)

    return script


def flood(beginning: bytes, *, status: int = 200, kind: str = "application/json", length: int = 0) -> Script:
    """One line without end after ``beginning``, of an announced ``length`` or in chunks."""

    async def script(wire: Wire) -> None:
        framing = f"content-length: {length}" if length else "transfer-encoding: chunked"
        await wire.send(f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n".encode())
        send = wire.send if length else wire.chunk
        await send(beginning)
        while True:
            await send(FLOOD)

    return script


def drip(beginning: bytes, drop: bytes = b" ") -> Script:
    """``beginning``, and then a little now and then, for ever: no single read takes long."""

    async def script(wire: Wire) -> None:
        await wire.send(beginning)
        while True:
            await wire.send(drop)
            await asyncio.sleep(DRIP_S)

    return script


def drip_of_a_body(status: int, kind: str = "application/json") -> Script:
    """A whole body is announced, and comes a byte at a time."""
    return drip(f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: 1000000\r\n\r\n{{".encode())


def headers(size: int, *, ends: bool) -> Script:
    """A good object behind a header of ``size`` bytes, or headers without end."""

    async def script(wire: Wire) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        if ends:
            await wire.send(b"x-large: " + b"x" * size + b"\r\ncontent-length: 2\r\n\r\n{}")
            return
        for number in itertools.count():
            await wire.send(f"x-{number}: {'x' * size}\r\n".encode())

    return script
