"""An endpoint that fails as told: one script per answer, over raw sockets on loopback.

A *script* is a coroutine that gets a ``Wire`` and says what happens on the connection. The server plays one per
request, in order; the last one again and again.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        return json.loads(self.body)


class Wire:
    """The connection, as a script sees it."""

    def __init__(self, writer: asyncio.StreamWriter, request: Received, released: asyncio.Event) -> None:
        self.request = request
        self._writer, self._released = writer, released
        self.closed = False

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, status: int, body: object = b"", headers: Sequence[str] = (), **head: object) -> None:
        """A whole answer; ``length`` and ``kind`` override its content length and type."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [
            f"HTTP/1.1 {status} X",
            f"content-type: {head.get('kind', 'application/json')}",
            f"content-length: {head.get('length', len(raw))}",
            *headers,
        ]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode() + raw)

    async def begin_stream(self, kind: str = "text/event-stream") -> None:
        await self.send(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode())

    async def chunk(self, data: bytes) -> None:
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def event(self, told: object, name: str = "") -> None:
        data = told if isinstance(told, str) else json.dumps(told)
        await self.chunk((f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode())

    async def end_stream(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def hang(self) -> None:
        """Say nothing more, until the server closes."""
        await self._released.wait()

    def close(self) -> None:
        self.closed = True

    def reset(self) -> None:
        """RST instead of FIN."""
        linger = struct.pack("ii", 1, 0)
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.closed = True


Script = Callable[[Wire], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class FaultServer:
    """A running server and what it was asked."""

    port: int
    scheme: str = "http"
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    """Accepted so far."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1"


@asynccontextmanager
async def fault_server(*scripts: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[FaultServer]:
    """A server that plays ``scripts`` for the length of the block, on a port of its own."""
    released = asyncio.Event()
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
    handle = FaultServer(port=0, scheme="https" if tls else "http")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections[task] = writer
        handle.connections += 1
        try:
            while (request := await _request(reader)) is not None:
                number = len(handle.received)
                handle.received.append(request)
                wire = Wire(writer, request, released)
                await scripts[min(number, len(scripts) - 1)](wire)
                if wire.closed:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left, as it may
        finally:
            writer.close()
            with suppress(OSError):  # it was reset, or the other side did not wait for its end
                await writer.wait_closed()
            del connections[task]

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    handle.port = server.sockets[0].getsockname()[1]
    try:
        yield handle
    finally:
        released.set()
        server.close()
        for writer in connections.values():
            writer.close()
        await asyncio.gather(*connections)
        await server.wait_closed()


async def _request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method=method, path=path, headers=headers, body=body)
