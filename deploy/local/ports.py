"""Free ports on the loopback interface."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from deploy.local.servers import HOST
from shared.errors import UserError

LOWEST = 20_000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
TRIES = 1000


def free_ports(count: int) -> tuple[int, ...]:
    """``count`` different ports that nobody listens on now.

    They lie below the range the kernel gives to outgoing connections. A port of that range can be taken by any
    connection while its server restarts, and a client that tries such a port over and over ends connected to itself.

    Raises:
        UserError: there are not so many.
    """
    highest = int(EPHEMERAL.read_text().split()[0]) - 1
    found: set[int] = set()
    for _ in range(TRIES + count):
        if len(found) == count:
            return tuple(found)
        port = LOWEST + secrets.randbelow(highest - LOWEST)
        if is_free(port):
            found.add(port)
    raise UserError(f"{count} free ports were not found", where=f"{HOST}:{LOWEST}-{highest}")


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port``; what lingers of closed connections is no hindrance."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
