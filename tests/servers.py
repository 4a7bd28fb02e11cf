"""Real servers for the tests: Tansu, mongod and Valkey from packages, started on first use and ended with the process.

``KAFKA_BOOTSTRAP=host:port``, ``MONGO_URL`` and ``REDIS_URL`` in the environment name servers to use instead.

Start servers from the main thread: the kernel ends them when the thread that started them does, so that a test process
that is killed leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.local import servers
from deploy.local.servers import HOST, Command

START_S = 30.0
PORTS = range(15_000, 30_000)
"""Below those that the kernel gives to clients: a client that looks for a dead server there could find itself."""
PR_SET_PDEATHSIG = 1


class Server:
    """A server on a port of its own that can be killed and started again there."""

    def __init__(self, command: Callable[[int], Command]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self.log = Path(tempfile.mkstemp(prefix="kernelevolve-server-", suffix=".log")[1])
        self.port = 0
        atexit.register(self.close)

    def start(self) -> Server:
        """Start it and wait until it takes connections. The port stays what it was the first time."""
        first = self.port == 0
        for _ in range(20 if first else 1):
            self.port = free_port() if first else self.port
            if self._listens():
                return self
        raise RuntimeError(f"no server on port {self.port}:\n{self.log.read_text(errors='replace')[-2000:]}")

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether the process that was started still runs: a server on its port may be another one."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL, as a crash: nothing is written, nobody is told."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)

    def thaw(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it for good."""
        self.kill()
        self.log.unlink(missing_ok=True)
        atexit.unregister(self.close)

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _listens(self) -> bool:
        command = self._command(self.port)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command.argv,
                env={**os.environ, **command.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, no lock
            )
        deadline = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex((HOST, self.port)) == 0:
                    return True
            time.sleep(0.005)
        self.kill()
        return False

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        process.wait()


def free_port() -> int:
    chance = random.SystemRandom()
    while True:
        port = chance.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# --- brokers ----------------------------------------------------------------------------------------------------------


@contextmanager
def fresh_broker() -> Iterator[Server]:
    """A broker that holds nothing; up in 20 ms. Never the one of ``KAFKA_BOOTSTRAP``."""
    server = Server(servers.broker).start()
    try:
        yield server
    finally:
        server.close()


@functools.cache
def kafka_bootstrap() -> str:
    """``host:port`` of the broker this process shares; topics have fixed names, so tests that share it meet."""
    return os.environ.get("KAFKA_BOOTSTRAP") or f"{HOST}:{Server(servers.broker).start().port}"


# --- databases --------------------------------------------------------------------------------------------------------


def mongo_url(database: str = "kernelevolve") -> str:
    """A ``STORE_URL`` of the replica set this process shares; ask for a database of your own.

    ``MONGO_URL`` must name its replica set, and its database is replaced.
    """
    given = os.environ.get("MONGO_URL")
    if given:
        address, _, options = given.partition("?")
        host = address.removeprefix("mongodb://").partition("/")[0]
        return f"mongodb://{host}/{database}" + (f"?{options}" if options else "")
    return servers.store_url(mongo_server().port, database)


@functools.cache
def mongo_server() -> Server:
    """The mongod behind ``mongo_url``, a primary by the time this returns."""
    server = fresh_mongo()
    initiate(server)
    return server


def fresh_mongo() -> Server:
    """A mongod with an empty folder that is removed at exit; its replica set is not initiated yet."""
    folder = _folder("mongo")
    return Server(lambda port: servers.mongo(port, folder)).start()


def initiate(server: Server) -> None:
    """Make a mongod the primary of its replica set of one. Not from inside an event loop."""
    from shared.store.mongo import initiate_replica_set

    asyncio.run(initiate_replica_set(HOST, server.port))


# --- caches -----------------------------------------------------------------------------------------------------------


def redis_url() -> str:
    """A ``CACHE_URL`` of the server this process shares; use keys of your own."""
    return os.environ.get("REDIS_URL") or servers.cache_url(redis_server().port)


@functools.cache
def redis_server() -> Server:
    return fresh_redis()


def fresh_redis() -> Server:
    """A Valkey with an empty folder that is removed at exit."""
    folder = _folder("redis")
    return Server(lambda port: servers.redis(port, folder)).start()


def _folder(name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"kernelevolve-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
