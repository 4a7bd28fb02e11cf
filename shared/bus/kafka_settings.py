"""How to reach a Kafka cluster, and every limit of the adapter."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from shared.errors import UserError

MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
FORM = "write kafka://[user:password@]host:port[,host:port][?sasl=MECHANISM] or kafkas://…[?ca=&cert=&key=FILE]"
PORT = 9092


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Read with prefix ``KAFKA_``. The defaults suit Apache Kafka; ``deploy/local`` says what Tansu needs."""

    replication: int = -1
    """Replicas of topics created here; -1: what the broker is set to."""
    fetch_max_wait_ms: int = 500
    """How long a broker without news holds a fetch. No cost in latency on Kafka, which answers when a record comes."""
    session_timeout_ms: int = 30_000
    """A member that is silent for so long is dead; how late its work is taken over."""
    heartbeat_interval_ms: int = 3_000
    """Also how late a member hears of a rebalance."""
    max_poll_interval_ms: int = 300_000
    """A member that is not polled for so long is stuck, and leaves."""
    rebalance_timeout_ms: int = 30_000
    """How long the others wait for a member to rejoin."""
    request_timeout_ms: int = 40_000
    """Longest wait for any answer; joining a group is one answer, so more than the rebalance timeout."""
    publish_timeout_ms: int = 10_000
    """After so long without an acknowledgement ``publish`` says ``Unavailable``."""
    commit_timeout_ms: int = 10_000
    watch_interval_ms: int = 2_000
    """How often the broker is asked whether it lives and has our topics."""
    watch_timeout_ms: int = 5_000
    rewind_patience_ms: int = 3_000
    """A log that has ended before our position for so long has lost records; reading starts over."""
    linger_ms: int = 1
    """Wait for company before a batch is sent. Records that come while a request is in flight share the next anyway."""
    record_bytes_max: int = 1_000_000
    """Largest record, key and headers included; just below what a Kafka broker accepts by default."""
    buffer_records: int = 100
    """Records a member takes from the driver at once."""
    leave_on_close: bool = True
    """Tell the group when a member closes, so that the others take over at once and not a session later. Not on Tansu:
    a group whose members all leave at the same time never forms again there."""
    instance_id: str = ""
    """Static membership: a stable name of this process, unique in the cluster. A restart within the session timeout
    then moves no partition. Empty: none."""

    def __post_init__(self) -> None:
        if not 0 < 2 * self.heartbeat_interval_ms <= self.session_timeout_ms:
            raise ValueError("KAFKA_HEARTBEAT_INTERVAL_MS must be at most half of KAFKA_SESSION_TIMEOUT_MS")
        if self.rebalance_timeout_ms >= self.request_timeout_ms:
            raise ValueError("KAFKA_REQUEST_TIMEOUT_MS must be above KAFKA_REBALANCE_TIMEOUT_MS")
        if self.fetch_max_wait_ms < 1:
            raise ValueError("KAFKA_FETCH_MAX_WAIT_MS must be at least 1")
        if self.replication == 0 or self.replication < -1:
            raise ValueError("KAFKA_REPLICATION must be positive, or -1 for the broker's default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where the brokers are and who we are to them."""

    servers: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    mechanism: str = MECHANISMS[0]
    tls: ssl.SSLContext | None = None

    @property
    def protocol(self) -> str:
        return ("SASL_" if self.user else "") + ("SSL" if self.tls else "PLAINTEXT")


def parse(url: str) -> Cluster:
    """``kafka://`` or ``kafkas://`` (TLS). Raises ``UserError``, which never shows the password."""
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    servers = tuple(_server(host) for host in hosts.split(",") if host)
    options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    unknown = options.keys() - {"sasl", "ca", "cert", "key"}
    if not servers or unknown or parts.path.strip("/"):
        what = f"unknown option {min(unknown)!r}" if unknown else "is not a Kafka address"
        raise UserError(what, where=f"BUS_URL={parts.scheme}://{hosts}", hint=FORM)
    mechanism = options.get("sasl", MECHANISMS[0]).upper()
    if mechanism not in MECHANISMS:
        raise UserError(f"unknown mechanism {mechanism!r}", where="BUS_URL", hint=f"use {', '.join(MECHANISMS)}")
    return Cluster(
        servers=servers,
        user=unquote(user),
        password=unquote(password),
        mechanism=mechanism,
        tls=_tls(options) if parts.scheme == "kafkas" else None,
    )


def _server(host: str) -> str:
    name, colon, port = host.rpartition(":")
    if not colon or "]" in port:  # an IPv6 address without port ends in a bracket
        return f"{host}:{PORT}"
    if not port.isdigit() or not name:
        raise UserError(f"no port in {host!r}", where="BUS_URL", hint=FORM)
    return host


def _tls(options: dict[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        if "cert" in options:
            context.load_cert_chain(options["cert"], options.get("key"))
    except OSError as error:  # includes ssl.SSLError
        raise UserError(f"cannot load the certificates: {error}", where="BUS_URL", hint=FORM) from error
    return context
