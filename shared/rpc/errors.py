"""The project's errors as rich statuses (``google.rpc.Status``), and back.

A servicer raises what any other code raises. The code tells programs what to do, ``ErrorInfo`` (reason, domain) tells
them exactly what it was, ``BadRequest`` names the field, ``RetryInfo`` says when to try again; the message is the one
line for a person.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from shared.errors import (
    AlreadyExists,
    Conflict,
    KernelEvolveError,
    NotAllowed,
    NotFound,
    Poison,
    ReplayDivergence,
    Retryable,
    Unauthenticated,
    Unavailable,
    UserError,
)
from shared.redaction import Redaction

DOMAIN = "kernelevolve"
RETRY_AFTER_S = 1
"""What ``RetryInfo`` advises: a dependency that restarts needs about that."""

Code = grpc.StatusCode

CODES: tuple[tuple[type[KernelEvolveError], grpc.StatusCode], ...] = (
    (NotFound, Code.NOT_FOUND),
    (AlreadyExists, Code.ALREADY_EXISTS),
    (Unauthenticated, Code.UNAUTHENTICATED),
    (NotAllowed, Code.PERMISSION_DENIED),
    (UserError, Code.INVALID_ARGUMENT),
    (Poison, Code.INVALID_ARGUMENT),
    (Retryable, Code.UNAVAILABLE),
    (Conflict, Code.UNAVAILABLE),  # another replica owns it now and will answer
    (ReplayDivergence, Code.DATA_LOSS),
)
"""The first that fits an error decides. Everything else is INTERNAL: our own fault, told to the log alone."""

MISTAKES: dict[grpc.StatusCode, type[UserError]] = {
    Code.INVALID_ARGUMENT: UserError,
    Code.FAILED_PRECONDITION: UserError,
    Code.OUT_OF_RANGE: UserError,
    Code.NOT_FOUND: NotFound,
    Code.ALREADY_EXISTS: AlreadyExists,
    Code.UNAUTHENTICATED: Unauthenticated,
    Code.PERMISSION_DENIED: NotAllowed,
}
"""Codes that a caller mends."""

UNKNOWN_EFFECT = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.ABORTED)
"""Codes of a call of which nothing is known but that it did not return."""

TEXT_BYTES_MAX = 400
"""Of a message and of each of its details. Together they travel as headers, of which peers take 8 KiB."""
CUT = "…"

TOO_LARGE = "message larger than"
"""In gRPC's own text for a message over the limit, whose code a flood of calls has too."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def as_statuses(context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[None]:
    """End the call with the status of whatever the block raises."""
    try:
        yield
    except (grpc.aio.AbortError, grpc.aio.BaseError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets a status and the log gets the rest
        await abort(context, status_of(error))


async def abort(context: grpc.aio.ServicerContext[Any, Any], rich: status_pb2.Status) -> NoReturn:
    """End the call with ``rich``."""
    final = rpc_status.to_status(rich)
    await context.abort(final.code, final.details, trailing_metadata=final.trailing_metadata)


def status_of(error: Exception) -> status_pb2.Status:
    """The status that tells a caller of ``error``; one that is our own fault is logged and told by a number only."""
    for owner, code in CODES:
        if isinstance(error, owner):
            return _status(code, str(error), reason_of(type(error)), error)
    if isinstance(error, NotImplementedError):  # the generated base class's answer
        return _status(Code.UNIMPLEMENTED, "the server does not offer this call", "NOT_OFFERED", error)
    incident = uuid.uuid4().hex[:12]
    log.error("incident %s: a call failed", incident, exc_info=error)
    return _status(Code.INTERNAL, f"internal error; the server's log tells of incident {incident}", "INTERNAL", error)


def status(code: grpc.StatusCode, message: str, reason: str) -> status_pb2.Status:
    """A status that stands for no error of ours."""
    return _status(code, message, reason, None)


def reason_of(owner: type[Exception]) -> str:
    """``ErrorInfo.reason``: ``AlreadyExists`` is ``ALREADY_EXISTS``."""
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in owner.__name__).lstrip("_")


def _status(code: grpc.StatusCode, message: str, reason: str, error: Exception | None) -> status_pb2.Status:
    info = error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN)
    details: list[Any] = [info]
    if isinstance(error, UserError):
        info.metadata.update(
            {"what": one_line(error.what), "where": one_line(error.where), "hint": one_line(error.hint)}
        )
        if code is Code.INVALID_ARGUMENT:
            violation = error_details_pb2.BadRequest.FieldViolation(
                field=one_line(error.where), description=one_line(error.what)
            )
            details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if code is Code.UNAVAILABLE:
        details.append(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=RETRY_AFTER_S)))
    packed = [_packed(detail) for detail in details]
    return status_pb2.Status(code=code.value[0], message=one_line(message), details=packed)


def one_line(text: str) -> str:
    """``text``, which may quote what a caller sent, as one short line of printable characters and without secrets."""
    text = Redaction(os.environ)(text)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:TEXT_BYTES_MAX])
    told = shown.encode(errors="backslashreplace")
    if len(told) <= TEXT_BYTES_MAX and len(text) <= TEXT_BYTES_MAX:
        return told.decode()
    return told[: TEXT_BYTES_MAX - len(CUT.encode())].decode(errors="ignore") + CUT


def _packed(message: Any) -> any_pb2.Any:
    box = any_pb2.Any()
    box.Pack(message)
    return box


@contextmanager
def as_ours(server: str) -> Iterator[None]:
    """Raise what a call to ``server`` fails with as an error of ours.

    Raises:
        UserError: a mistake of the caller's; of the class that the server raised where that is known.
        Unavailable: the server could not be reached, is stopping, or did not answer in time.
        Retryable: the server failed.
    """
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise ours(error, server) from error
    except grpc.aio.UsageError as error:  # the channel was closed under the call
        raise Unavailable(f"{server}: {error}") from error


def ours(error: grpc.aio.AioRpcError, server: str) -> KernelEvolveError:
    """The error of ours that a failed call to ``server`` stands for."""
    code, text = error.code(), error.details() or error.code().name
    info = _info(error)
    if code in MISTAKES:
        owner = MISTAKES[code]
        if info is not None and "what" in info.metadata:
            told = info.metadata
            return owner(told["what"], where=told["where"], hint=told["hint"])
        return owner(text, where=server)
    if code is Code.RESOURCE_EXHAUSTED and TOO_LARGE in text:
        return UserError(text, where=server)
    if code is Code.UNIMPLEMENTED:
        return UserError("does not offer this call", where=server, hint="it may serve other services, or be older")
    if code in UNKNOWN_EFFECT or code is Code.RESOURCE_EXHAUSTED:
        return Unavailable(f"{server}: {text}")
    return Retryable(f"{server}: {code.name}: {text}")


def _info(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo | None:
    """Our own ErrorInfo, when the server was one of ours."""
    try:
        rich = rpc_status.from_call(error)  # type: ignore[arg-type]
    except ValueError:  # details that contradict the status: somebody else's server
        return None
    for detail in rich.details if rich else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            return info
    return None
