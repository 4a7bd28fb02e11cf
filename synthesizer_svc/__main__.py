"""``python -m synthesizer_svc``: the synthesizer as a process of its own."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from shared import exit_codes, process
from shared.errors import UserError
from shared.ports import Ports
from shared.service import Service
from synthesizer_svc import service, settings
from synthesizer_svc.no_knowledge import NoKnowledge

if TYPE_CHECKING:
    from synthesizer_svc.remote_knowledge import RemoteKnowledge
    from synthesizer_svc.remote_trials import RemoteTrials

log = logging.getLogger(__name__)


def main() -> int:
    """Run until stopped; returns the exit code."""
    try:
        chosen = settings.from_env(os.environ)
        remote = _remote(chosen.knowledge_url) if chosen.knowledge_url else None
        trials = _trials(chosen.evaluator_urls) if chosen.evaluator_urls else None
    except UserError as error:
        print(error, file=sys.stderr)
        return exit_codes.BAD_INPUT

    def build(ports: Ports) -> Sequence[Service]:
        if remote is None:
            log.warning("KNOWLEDGE_URL is not set: kernels are written without documents and skills")
        else:
            log.info("documents and skills come from %s", chosen.knowledge_url)
        built = service.build(ports, chosen, remote or NoKnowledge(), trials=trials)
        return (closing(built, *(one for one in (remote, trials) if one is not None)),)

    return process.main(build)


class Closes(Protocol):
    async def close(self) -> None: ...


def closing(built: Service, *remotes: Closes) -> Service:
    """``built``, which closes ``remotes`` beside what it closes already."""

    async def close() -> None:
        async with AsyncExitStack() as stack:
            for remote in remotes:
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


def _trials(urls: str) -> RemoteTrials:
    try:
        from synthesizer_svc.remote_trials import VARIABLE, RemoteTrials, clients
    except ImportError as error:
        hint = "pip install 'kernelevolve[grpc]'"
        raise UserError(f"needs the extra `grpc`: {error}", where="EVALUATOR_URLS", hint=hint) from error
    chips = clients(urls, os.environ)
    log.info("%s: kernels of models are built there before they are handed on: %s", VARIABLE, ", ".join(chips))
    return RemoteTrials(chips)


if __name__ == "__main__":
    sys.exit(main())
