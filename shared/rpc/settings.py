"""How a process serves gRPC, and how it calls (pure)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

MIB = 1 << 20
TRIES_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """``GRPC_*``. Without ``listen`` there is no server."""

    listen: str = ""
    """``host:port``; port 0 takes a free one. A wildcard host listens on every interface."""
    tls_cert: str = ""
    """Path of the certificate chain, PEM. With ``tls_key``: TLS only."""
    tls_key: str = ""
    tls_client_ca: str = ""
    """Path of the authorities that clients' certificates must come from, PEM: mTLS."""
    tokens: str = ""
    """Path of the token file. Without one nobody is asked for a token."""
    allow_plaintext: bool = False
    """Serve without TLS beyond loopback: for a network that encrypts by itself, such as a service mesh."""
    allow_anonymous: bool = False
    """Serve without tokens and without mTLS beyond loopback: for a network where every caller is trusted."""
    message_bytes_max: int = 16 * MIB
    """Largest message either way; a larger one is RESOURCE_EXHAUSTED before it is read. Sources are kilobytes."""
    calls_max: int = 1024
    """Calls in progress, streams included; one more is RESOURCE_EXHAUSTED. Bounds memory under a flood."""
    deadline_max_s: float = 0.0
    """Longest time of a unary call, whatever the client asked for; 0: what ``methods`` says of each."""
    keepalive_s: float = 60.0
    """Pause between pings to a silent client: a client that vanished frees its streams after this and the timeout."""
    keepalive_timeout_s: float = 20.0
    client_ping_min_s: float = 10.0
    """Clients that ping more often are cut off."""
    connection_age_s: float = 1800.0
    """A connection is asked to reconnect after this time: without it, old clients never find new replicas."""
    connection_age_grace_s: float = 600.0
    """What calls on an old connection may still take; a watch resumes on the new one."""
    drain_s: float = 10.0
    """What calls in progress may take when the server stops. Streams that can be resumed move at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """``KERNELEVOLVE_*``: which server, as whom, trusting whom."""

    server: str = ""
    """``host:port``."""
    token: str = field(default="", repr=False)
    tls: bool = False
    """TLS with the system's authorities; implied by ``ca``."""
    ca: str = ""
    """Path of the authorities that the server's certificate must come from, PEM."""
    cert: str = ""
    """Path of this client's own certificate chain, PEM, for mTLS. With ``key``."""
    key: str = ""
    allow_plaintext: bool = False
    """Send the token without TLS beyond loopback: for a network that encrypts by itself."""
    tries_max: int = 5
    """Of a repeatable call while the server is UNAVAILABLE, 1 to 5: gRPC allows no more."""
    retry_pause_s: float = 0.5
    """Before the second try; doubles, up to eight times this. Give or take a fifth, 7.5 s in all for five tries: what a
    server needs to restart."""
    message_bytes_max: int = 16 * MIB
    keepalive_s: float = 30.0
    """Pause between pings while a call is open: notices a server that vanished under a watch."""
    keepalive_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        if not 1 <= self.tries_max <= TRIES_MAX:
            raise ValueError(f"tries_max is {self.tries_max}, expected 1 to {TRIES_MAX}")

    @property
    def encrypted(self) -> bool:
        return self.tls or bool(self.ca or self.cert)


def is_loopback(address: str) -> bool:
    """Whether ``host:port`` reaches this machine only. Names other than ``localhost`` are not looked up."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
