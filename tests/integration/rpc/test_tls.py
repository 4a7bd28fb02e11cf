"""TLS and mTLS: the right certificate, a wrong one, none, and what may go without."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from shared.errors import Unavailable, UserError
from shared.rpc.client import connect
from shared.rpc.errors import as_ours
from shared.rpc.settings import ClientSettings
from tests.aio import on_loop
from tests.integration.rpc.toys import Toy, a_get, stub_of, toy_server


class Pki:
    """One authority, what it issued, and an authority that nobody trusts, as files."""

    def __init__(self, folder: Path) -> None:
        authority, stranger = trustme.CA(), trustme.CA()
        self.ca, self.other_ca = str(folder / "ca.pem"), str(folder / "other_ca.pem")
        authority.cert_pem.write_to_path(self.ca)
        stranger.cert_pem.write_to_path(self.other_ca)
        self.server = self._pair(folder, "server", authority.issue_cert("127.0.0.1"))
        self.elsewhere = self._pair(folder, "elsewhere", authority.issue_cert("kernels.example.org"))
        self.client = self._pair(folder, "client", authority.issue_cert("client"))
        self.impostor = self._pair(folder, "impostor", stranger.issue_cert("client"))

    def _pair(self, folder: Path, name: str, issued: trustme.LeafCert) -> tuple[str, str]:
        cert, key = folder / f"{name}.pem", folder / f"{name}.key"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(key)
        return str(cert), str(key)

    def serve(self, **settings) -> dict[str, str]:
        """Server settings with this authority's certificate for 127.0.0.1."""
        cert, key = self.server
        return {"tls_cert": cert, "tls_key": key} | settings


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


async def answer(address, **settings) -> str:
    """Id that a call is answered with, tried once."""
    async with stub_of(address, tries_max=1, **settings) as stub:
        with as_ours(address):
            return (await stub.Get(a_get())).search.search_id


@on_loop
async def test_a_client_that_trusts_the_authority_is_answered(pki):
    async with toy_server(Toy(), **pki.serve()) as address:
        assert await answer(address, ca=pki.ca) == "s"


@on_loop
async def test_a_server_certificate_of_another_authority_is_refused(pki):
    async with toy_server(Toy(), **pki.serve()) as address:
        with pytest.raises(Unavailable, match="certificate"):
            await answer(address, ca=pki.other_ca)


@on_loop
async def test_a_server_certificate_for_another_name_is_refused(pki):
    cert, key = pki.elsewhere
    async with toy_server(Toy(), tls_cert=cert, tls_key=key) as address:
        with pytest.raises(Unavailable):
            await answer(address, ca=pki.ca)


@on_loop
async def test_plaintext_does_not_get_through_to_a_tls_server(pki):
    async with toy_server(Toy(), **pki.serve()) as address:
        with pytest.raises(Unavailable):
            await answer(address)


@on_loop
async def test_mtls_answers_a_client_with_a_certificate_of_the_authority_and_no_other(pki):
    async with toy_server(Toy(), **pki.serve(tls_client_ca=pki.ca)) as address:
        cert, key = pki.client
        assert await answer(address, ca=pki.ca, cert=cert, key=key) == "s"
        with pytest.raises(Unavailable):
            await answer(address, ca=pki.ca)
        cert, key = pki.impostor
        with pytest.raises(Unavailable):
            await answer(address, ca=pki.ca, cert=cert, key=key)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"tls_cert": "c.pem"}, "GRPC_TLS_CERT, GRPC_TLS_KEY: one is set without the other"),
        ({"tls_client_ca": "ca.pem"}, "GRPC_TLS_CLIENT_CA: needs GRPC_TLS_CERT and GRPC_TLS_KEY"),
        ({"tls_cert": "/no/c.pem", "tls_key": "/no/c.key"}, "GRPC_TLS_KEY: /no/c.key cannot be read"),
        ({"listen": "0.0.0.0:0"}, "GRPC_LISTEN: 0.0.0.0:0 is beyond loopback and would be served without TLS"),
        ({"listen": "0.0.0.0:0", "allow_plaintext": True}, "anybody could submit and cancel"),
        ({"listen": "somewhere"}, "GRPC_LISTEN: is 'somewhere', expected host:port"),
        ({"tokens": "/no/tokens.toml"}, "/no/tokens.toml: cannot be read"),
    ],
)
@on_loop
async def test_settings_that_cannot_be_served_with_are_one_clear_line(settings, line):
    with pytest.raises(UserError) as refused:
        async with toy_server(Toy(), **settings):
            pass
    assert line in str(refused.value)


@on_loop
async def test_plaintext_beyond_loopback_is_served_when_it_is_allowed():
    async with toy_server(Toy(), listen="0.0.0.0:0", allow_plaintext=True, allow_anonymous=True) as address:
        assert await answer(address.replace("0.0.0.0", "127.0.0.1")) == "s"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"server": "kernels.example.org:443", "token": "ke_x"}, "KERNELEVOLVE_TOKEN: would go to kernels.example.org"),
        ({"server": "nowhere"}, "KERNELEVOLVE_SERVER: server is `nowhere`, expected host:port"),
        ({"server": "127.0.0.1:1", "cert": "c.pem"}, "KERNELEVOLVE_CERT, KERNELEVOLVE_KEY: one is set without the"),
        ({"server": "127.0.0.1:1", "ca": "/no/ca.pem"}, "KERNELEVOLVE_CA: /no/ca.pem cannot be read"),
    ],
)
@on_loop
async def test_a_clients_settings_that_make_no_sense_are_one_clear_line(settings, line):
    with pytest.raises(UserError) as refused:
        async with connect(ClientSettings(**settings)):
            pass
    assert line in str(refused.value)
