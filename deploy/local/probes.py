"""Whether a process of the cluster answers."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from deploy.local.servers import HOST
from deploy.local.state import Member
from shared.settings import from_env

ANSWER_S = 2.0
REDIS_PING, REDIS_PONG = b"PING\r\n", b"+PONG"


def ready(members: Iterable[Member]) -> set[str]:
    """Names of those that can be given work: a server answers, a service says that it is SERVING."""
    members = tuple(members)
    listening = [member for member in members if all(_listens(port) for port in member.ports.values())]
    services = {f"{HOST}:{member.ports['grpc']}": member.name for member in listening if "grpc" in member.ports}
    found = {member.name for member in listening if "grpc" not in member.ports and _answers(member)}
    return found | {services[address] for address in _serving(services)}


def _serving(addresses: Iterable[str]) -> set[str]:
    from shared.rpc import probe
    from shared.rpc.settings import ClientSettings

    return probe.serving(addresses, from_env(ClientSettings, os.environ, "KERNELEVOLVE_"), ANSWER_S)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(ANSWER_S)
        return client.connect_ex((HOST, port)) == 0


def _answers(member: Member) -> bool:
    """Redis loads its file while it listens already; the others listen once they can answer."""
    if "redis" not in member.ports:
        return True
    with socket.socket() as client:
        client.settimeout(ANSWER_S)
        try:
            client.connect((HOST, member.ports["redis"]))
            client.sendall(REDIS_PING)
            return client.recv(len(REDIS_PONG)) == REDIS_PONG
        except OSError:
            return False
