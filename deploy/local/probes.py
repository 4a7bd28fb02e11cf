"""Whether a process of the cluster answers."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from deploy.local.servers import HOST
from deploy.local.state import Member

ANSWER_S = 2.0


def accepts(port: int) -> bool:
    """Whether somebody listens on ``port``."""
    with socket.socket() as probe:
        probe.settimeout(ANSWER_S)
        return probe.connect_ex((HOST, port)) == 0


def ready(members: Iterable[Member]) -> set[str]:
    """Names of those that answer."""
    return {member.name for member in members if all(accepts(port) for port in member.ports.values())}
