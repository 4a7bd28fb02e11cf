"""Wrapping a servicer's methods: what has to happen around every call, without the servicer knowing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, TypeAlias

import grpc

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Around = Callable[[Context], AbstractAsyncContextManager[None]]
"""Entered before the servicer's method sees the request, left when the call is over, however it ends."""


def wrap(handler: Handler, around: Around) -> Handler:
    """``handler`` inside ``around``.

    Raises:
        TypeError: a method that takes a stream; none of ours does.
    """
    if handler.request_streaming:
        raise TypeError("methods that take a stream are not wrapped")
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(
            _stream(handler.unary_stream, around), handler.request_deserializer, handler.response_serializer
        )
    return grpc.unary_unary_rpc_method_handler(
        _unary(handler.unary_unary, around), handler.request_deserializer, handler.response_serializer
    )


def _unary(method: Any, around: Around) -> Callable[[Any, Context], Awaitable[Any]]:
    async def call(request: Any, context: Context) -> Any:
        async with around(context):
            return await method(request, context)

    return call


def _stream(method: Any, around: Around) -> Any:
    """A coroutine that writes: when the call is cancelled, the servicer's generator is closed before this ends."""
    if not inspect.isasyncgenfunction(method):

        async def inner(request: Any, context: Context) -> None:
            async with around(context):
                await method(request, context)

        return inner

    async def call(request: Any, context: Context) -> None:
        answers: AsyncIterator[Any] = method(request, context)
        async with around(context), aclosing(answers):  # type: ignore[type-var]
            async for answer in answers:
                await _write(context, answer)

    return call


async def _write(context: Context, answer: Any) -> None:
    """``context.write``, seen to its end also when this is cancelled: a status cannot be sent beside a message."""
    writing = asyncio.ensure_future(context.write(answer))
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait({writing})
        if not writing.cancelled():
            writing.exception()  # looked at: the call is over, whatever became of the message
        raise


class Interceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Puts ``around`` about every method that ``choose`` has something to say about.

    ``choose`` gets the method's path and answers what to enter around its calls, or None to leave it alone.
    """

    def __init__(self, choose: Callable[[str], Around | None]) -> None:
        self._choose = choose

    async def intercept_service(
        self, continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        handler = await continuation(handler_call_details)
        around = self._choose(handler_call_details.method)
        if handler is None or around is None:
            return handler  # no such method: UNIMPLEMENTED
        return wrap(handler, around)
