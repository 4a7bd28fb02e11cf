"""Around every call: counted and timed, a span in the caller's trace, log lines that name the call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc

from shared import logs, metrics, tracing
from shared.clock import SECOND_NS
from shared.rpc.handlers import Around, Context, Interceptor

_BY_NUMBER = {code.value[0]: code.name for code in grpc.StatusCode}


def interceptor() -> Interceptor:
    """To be the outermost one: it sees the status that the others made of what was raised."""
    return Interceptor(_choose)


def _choose(path: str) -> Around | None:
    if path.startswith("/grpc."):
        return None  # probes and reflection tell nothing
    method = path.removeprefix("/")

    @asynccontextmanager
    async def told(context: Context) -> AsyncIterator[None]:
        began_ns = time.monotonic_ns()
        code = "OK"
        try:
            with tracing.answering(method, _texts(context)), logs.about(call=method):
                yield
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        except grpc.aio.AbortError:
            code = _code(context)
            raise
        except BaseException:
            code = "UNKNOWN"  # what gRPC answers for an exception
            raise
        finally:
            metrics.RPC.inc(method, code)
            metrics.RPC_SECONDS.observe((time.monotonic_ns() - began_ns) / SECOND_NS, method)

    return told


def _texts(context: Context) -> dict[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def _code(context: Context) -> str:
    """The status: gRPC's library for asyncio gives a number, its stubs a ``StatusCode``."""
    code = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else _BY_NUMBER.get(int(code), "UNKNOWN")
