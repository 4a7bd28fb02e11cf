"""TLS and mTLS from files, and what may go without."""

from __future__ import annotations

from pathlib import Path

import grpc

from shared.errors import UserError
from shared.rpc.settings import ClientSettings, ServerSettings, is_loopback


def of_server(settings: ServerSettings) -> grpc.ServerCredentials | None:
    """What to serve with; None: plaintext.

    Raises:
        UserError: half a pair, an unreadable file, or plaintext beyond loopback.
    """
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise UserError("one is set without the other", where="GRPC_TLS_CERT, GRPC_TLS_KEY")
    if not settings.tls_cert:
        if settings.tls_client_ca:
            raise UserError("needs GRPC_TLS_CERT and GRPC_TLS_KEY", where="GRPC_TLS_CLIENT_CA")
        if not (settings.allow_plaintext or is_loopback(settings.listen)):
            raise UserError(
                f"{settings.listen} is beyond loopback and would be served without TLS",
                where="GRPC_LISTEN",
                hint="set GRPC_TLS_CERT and GRPC_TLS_KEY; GRPC_ALLOW_PLAINTEXT=true if the network encrypts",
            )
        return None
    pair = (_read("GRPC_TLS_KEY", settings.tls_key), _read("GRPC_TLS_CERT", settings.tls_cert))
    authority = _read("GRPC_TLS_CLIENT_CA", settings.tls_client_ca) if settings.tls_client_ca else None
    return grpc.ssl_server_credentials([pair], root_certificates=authority, require_client_auth=authority is not None)


def of_client(settings: ClientSettings) -> grpc.ChannelCredentials | None:
    """What to call with; None: plaintext.

    Raises:
        UserError: half a pair, an unreadable file, or a token that would travel in plaintext beyond loopback.
    """
    if bool(settings.cert) != bool(settings.key):
        raise UserError("one is set without the other", where="KERNELEVOLVE_CERT, KERNELEVOLVE_KEY")
    if not settings.encrypted:
        if settings.token and not (settings.allow_plaintext or is_loopback(settings.server)):
            raise UserError(
                f"would go to {settings.server} without TLS",
                where="KERNELEVOLVE_TOKEN",
                hint="set KERNELEVOLVE_CA or KERNELEVOLVE_TLS=true; KERNELEVOLVE_ALLOW_PLAINTEXT=true if the network "
                "encrypts",
            )
        return None
    return grpc.ssl_channel_credentials(
        root_certificates=_read("KERNELEVOLVE_CA", settings.ca) if settings.ca else None,
        private_key=_read("KERNELEVOLVE_KEY", settings.key) if settings.key else None,
        certificate_chain=_read("KERNELEVOLVE_CERT", settings.cert) if settings.cert else None,
    )


def _read(variable: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", where=variable) from error
