"""Who may call what: the server's check of bearer tokens."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.errors import NotAllowed, Unauthenticated
from shared.rpc import tokens
from shared.rpc.handlers import Around, Context, Interceptor
from shared.rpc.methods import Method, of
from shared.rpc.tokens import Known, Role

HEADER = "authorization"
SCHEME = "bearer"
HINT = "give one in KERNELEVOLVE_TOKEN; `kernelevolve token new` makes one for the server's token file"

log = logging.getLogger(__name__)


def interceptor(known: tuple[Known, ...]) -> Interceptor:
    """Lets a call through when its token is known and its role suffices.

    A method that the table does not know needs ADMIN; health and reflection are open.
    """

    def choose(path: str) -> Around | None:
        if path.startswith("/grpc."):
            return None
        method = of(path) or Method(role=Role.ADMIN)

        @asynccontextmanager
        async def checked(context: Context) -> AsyncIterator[None]:
            check(known, context, path, method.role)
            yield

        return checked

    return Interceptor(choose)


def check(known: tuple[Known, ...], context: Context, path: str, needed: Role) -> None:
    """Raises ``Unauthenticated`` without a known token, ``NotAllowed`` when its role is below ``needed``."""
    name = path.rpartition("/")[2]
    presented = _presented(context)
    if presented is None:
        raise Unauthenticated("the call carries no bearer token", where=name, hint=HINT)
    caller = tokens.find(known, presented)
    if caller is None:
        log.warning("%s refused to %s: unknown token", name, context.peer())
        raise Unauthenticated("the server does not know this token", where=name, hint=HINT)
    if caller.role < needed:
        log.warning("%s refused to token %s: role %s", name, caller.name, caller.role.word)
        raise NotAllowed(
            f"needs role {needed.word}, token `{caller.name}` has role {caller.role.word}",
            where=name,
            hint="ask for a token with that role",
        )


def _presented(context: Context) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == HEADER and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            if scheme.lower() == SCHEME and token:
                return token.strip()
    return None
