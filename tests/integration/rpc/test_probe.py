"""The probe that container engines run, against servers of this process."""

from __future__ import annotations

import asyncio

import pytest
import trustme

from shared.health import Gone, Health, Phase
from shared.rpc.probe import main
from shared.rpc.server import serving
from shared.rpc.settings import ServerSettings
from shared.service import Service
from tests.aio import on_loop

FREE = "127.0.0.1:0"
TOY = (Service(name="toy"),)
SERVING, NOT_SERVING, UNUSABLE = 0, 1, 2


@pytest.fixture
def ask(monkeypatch):
    async def asked(address, *arguments):
        monkeypatch.setenv("GRPC_LISTEN", address)
        return await asyncio.to_thread(main, arguments)

    return asked


async def refreshed(ask, address, *arguments, expected):
    while await ask(address, *arguments) != expected:
        await asyncio.sleep(0.05)


@on_loop
async def test_a_ready_server_is_found_under_its_wildcard_address(ask):
    async with serving(TOY, ServerSettings(listen=FREE), [Health("toy", Phase.READY)]) as server:
        port = server.address.rpartition(":")[2]
        assert await ask(f"0.0.0.0:{port}") == SERVING


@on_loop
async def test_a_server_whose_broker_is_gone_is_unready_and_alive(ask):
    health = Health("toy", Phase.READY, gone={"bus": Gone(since_ns=1, reason="refused")})
    async with serving(TOY, ServerSettings(listen=FREE), [health]) as server:
        assert await ask(server.address) == NOT_SERVING
        assert await ask(server.address, "--service", "liveness") == SERVING


@on_loop
async def test_a_failed_service_is_to_be_restarted(ask):
    health = Health("toy", Phase.READY)
    async with serving(TOY, ServerSettings(listen=FREE), [health]) as server:
        assert await ask(server.address, "--service", "liveness") == SERVING
        health.phase = Phase.FAILED
        await refreshed(ask, server.address, "--service", "liveness", expected=NOT_SERVING)


@on_loop
async def test_a_server_that_demands_certificates_is_asked_with_the_process_own(ask, monkeypatch, tmp_path):
    authority = trustme.CA()
    pair = authority.issue_cert("localhost")
    paths = {name: str(tmp_path / name) for name in ("ca", "cert", "key")}
    authority.cert_pem.write_to_path(paths["ca"])
    pair.cert_chain_pems[0].write_to_path(paths["cert"])
    pair.private_key_pem.write_to_path(paths["key"])
    settings = ServerSettings(listen=FREE, tls_cert=paths["cert"], tls_key=paths["key"], tls_client_ca=paths["ca"])
    async with serving(TOY, settings, [Health("toy", Phase.READY)]) as server:
        assert await ask(server.address) == NOT_SERVING
        for name, path in paths.items():
            monkeypatch.setenv(f"KERNELEVOLVE_{name.upper()}", path)
        assert await ask(server.address) == SERVING


def test_a_process_that_serves_nothing_has_no_health(monkeypatch, capsys):
    monkeypatch.setenv("GRPC_LISTEN", "")
    assert main(()) == UNUSABLE
    assert capsys.readouterr().err.startswith("GRPC_LISTEN: is not set")
