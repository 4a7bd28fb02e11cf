"""``python -m synthesizer_svc``: the synthesizer as a process of its own."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from shared import process
from shared.errors import UserError
from shared.ports import Ports
from shared.service import Service
from synthesizer_svc import service, settings
from synthesizer_svc.no_knowledge import NoKnowledge

if TYPE_CHECKING:
    from synthesizer_svc.remote_knowledge import RemoteKnowledge

log = logging.getLogger(__name__)


def main() -> int:
    """Run until stopped; returns the exit code."""
    try:
        chosen = settings.from_env(os.environ)
        remote = _remote(chosen.knowledge_url) if chosen.knowledge_url else None
    except UserError as error:
        print(error, file=sys.stderr)
        return process.EXIT_USER_ERROR

    def build(ports: Ports) -> Sequence[Service]:
        if remote is None:
            log.warning("KNOWLEDGE_URL is not set: kernels are written without documents and skills")
            return (service.build(ports, chosen, NoKnowledge()),)
        log.info("documents and skills come from %s", chosen.knowledge_url)
        return (closing(service.build(ports, chosen, remote), remote),)

    return process.main(build)


def closing(built: Service, remote: RemoteKnowledge) -> Service:
    """``built``, which closes ``remote`` beside what it closes already."""

    async def close() -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(remote.close)
            if built.close is not None:
                stack.push_async_callback(built.close)

    return replace(built, close=close)


def _remote(url: str) -> RemoteKnowledge:
    try:
        from synthesizer_svc.remote_knowledge import RemoteKnowledge, client_settings
    except ImportError as error:
        hint = "pip install 'kernelevolve[grpc]'"
        raise UserError(f"needs the extra `grpc`: {error}", where="KNOWLEDGE_URL", hint=hint) from error
    return RemoteKnowledge(client_settings(url, os.environ))


if __name__ == "__main__":
    sys.exit(main())
