"""All services in one process, with no server at all: what a disturbed cluster's trees can be compared with too."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from cli.client import KernelEvolveClient, open_client
from deploy.local.ports import free_ports
from shared.rpc.settings import ClientSettings
from tests.chaos.faults import CHIP, Fault
from tests.chaos.system import ENVIRONMENT


class Embedded:
    """A running ``kernelevolve serve``. Nothing is ever done to it, so nothing is fenced or started again."""

    def __init__(self, server: str) -> None:
        self._server = server

    @asynccontextmanager
    async def client(self) -> AsyncIterator[KernelEvolveClient]:
        async with open_client(ClientSettings(server=self._server)) as client:
            yield client

    async def hurt(self, fault: Fault) -> None:
        raise NotImplementedError

    def log_lines(self, words: str) -> int:
        return 0

    def restarts(self) -> dict[str, int]:
        return {}


@contextmanager
def embedded(**environment: str) -> Iterator[Embedded]:
    """The program for the length of the block, with documents and skills of its own."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="kernelevolve-chaos-") as folder, Path(folder, "log").open("wb") as log:
        told = {
            "GRPC_LISTEN": f"127.0.0.1:{port}",
            "STORE_URL": f"sqlite:{folder}/kernelevolve.db",
            "XDG_DATA_HOME": folder,
            **ENVIRONMENT,
            **environment,
        }
        argv = [sys.executable, "-m", "cli.main", "serve", "--chip", CHIP]
        process = subprocess.Popen(argv, env=os.environ | told, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield Embedded(told["GRPC_LISTEN"])
        finally:
            process.kill()
            process.wait()
