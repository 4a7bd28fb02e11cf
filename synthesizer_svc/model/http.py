"""The one door to httpx: requests over HTTP, and every way they fail as one typed fault.

httpx is frozen at 0.28; a fork with the same calls goes on. Changing to it is this file. Defaults that are overridden:
redirects stay unfollowed (a redirect would carry the key elsewhere), compression is declined (a small answer could
unpack into a huge one), a connection is reused for less time than servers keep it, and not after a stream, and the
whole exchange has a deadline, because httpx's timeouts are for each read: an answer that drips would never end.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Mapping

import httpx

from shared.errors import UserError
from synthesizer_svc.model.exchange import Call, Head, Reader, TransportFault, Trouble
from synthesizer_svc.model.secret import Secret

KEEP_ALIVE_S = 3.0
"""Servers close idle connections after five seconds or more; one that closes as the next request leaves is lost."""
READ_OFF_S = 0.2
"""For the end of a stream after its last event; a server that leaves it open gets its connection closed."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PROXIES = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"

# At DEBUG it writes the headers of answers, and an endpoint may echo the key in one.
logging.getLogger("httpcore").setLevel(logging.INFO)


class HttpTransport:
    """See ``exchange.Transport``. Opens connections when first used, and keeps them until ``close``."""

    def __init__(
        self,
        url: str,
        *,
        credentials: Mapping[str, Secret],
        key: Secret | None = None,
        connect_s: float,
        silence_s: float,
        ca: str = "",
    ) -> None:
        """``credentials``: headers that prove who asks, by ``key``, which no fault shows, though an endpoint may echo
        it in what is no HTTP. ``ca``: a file of authorities to trust instead, PEM.

        Raises:
            UserError: ``url`` is none, ``ca`` cannot be read or holds no certificate, or what the environment says of
                proxies and authorities cannot be used.
        """
        base, self._url, self._key = _address(url), url, key
        authorities = _authorities(ca) if ca else True
        try:
            self._client = httpx.AsyncClient(
                base_url=base,
                headers={name: secret.reveal() for name, secret in credentials.items()}
                | {"accept-encoding": "identity", "user-agent": "kernelevolve"},
                verify=authorities,
                trust_env=base.host not in LOOPBACK,  # proxies of the environment are for what is elsewhere
                timeout=httpx.Timeout(silence_s, connect=connect_s, pool=None),
                limits=httpx.Limits(
                    max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_S
                ),
                follow_redirects=False,
            )
        except OSError as error:
            raise UserError("cannot be read as certificates, PEM", where="SSL_CERT_FILE or SSL_CERT_DIR") from error
        except ImportError as error:
            raise UserError("names a SOCKS proxy", where=PROXIES, hint="pip install 'httpx[socks]'") from error
        except (httpx.InvalidURL, ValueError) as error:  # with a password, perhaps: it is not repeated
            raise UserError("names no proxy that can be used", where=PROXIES, hint="http://host:port") from error

    async def send(self, call: Call, reader: Reader, *, deadline_s: float, answer_bytes_max: int) -> None:
        try:
            async with asyncio.timeout(max(0.0, deadline_s)):
                await self._exchange(call, reader, answer_bytes_max)
        except TimeoutError:
            raise TransportFault(Trouble.LATE, f"no whole answer within {deadline_s:.1f} s") from None
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
            raise self._fault(*_not_connected(error, self._url)) from None
        except httpx.TimeoutException as error:
            raise TransportFault(Trouble.SILENT, f"nothing came for too long ({type(error).__name__})") from error
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as error:
            raise self._fault(Trouble.CUT, _said(error)) from None

    async def _exchange(self, call: Call, reader: Reader, answer_bytes_max: int) -> None:
        request = self._client.build_request(
            "POST" if call.body else "GET",
            call.path.removeprefix("/"),
            content=call.body or None,
            headers=dict(call.headers)
            | ({"content-type": "application/json"} if call.body else {})
            | ({"connection": "close"} if call.streams else {}),
        )
        response = await self._client.send(request, stream=True)
        try:
            head = Head(status=response.status_code, headers={k.lower(): v for k, v in response.headers.items()})
            reader.begin(head)
            if head.headers.get("content-encoding", "identity").lower() != "identity":
                raise TransportFault(Trouble.ENCODED, "a compressed answer, though that was declined")
            taken = 0
            chunks = response.aiter_raw()
            async for chunk in chunks:
                taken += len(chunk)
                if taken > answer_bytes_max:
                    raise TransportFault(Trouble.TOO_LONG, f"an answer of more than {answer_bytes_max} bytes")
                if not reader.feed(chunk):
                    await _read_off(chunks)
                    break
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._client.aclose()

    def _fault(self, trouble: Trouble, said: str) -> TransportFault:
        return TransportFault(trouble, self._key.hide(said) if self._key else said)


async def _read_off(chunks: AsyncIterator[bytes]) -> None:
    """What follows an answer, when it is there already: a server that is ending it is not cut off."""
    try:
        async with asyncio.timeout(READ_OFF_S):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx.HTTPError):
        return  # the answer is whole; the connection is closed


def _address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
        _ = address.host  # its international form is looked at here
    except (httpx.InvalidURL, ValueError) as error:
        raise UserError("is no address", where=f"model endpoint {url!r}") from error
    return address


def _authorities(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise UserError("cannot be read as certificates, PEM", where=ca) from error


def _not_connected(error: httpx.HTTPError, url: str) -> tuple[Trouble, str]:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Trouble.UNTRUSTED, cause.verify_message or cause.reason or _said(cause)
        if isinstance(cause, ssl.SSLError):  # it ended in the middle, or what answers does not speak TLS
            return Trouble.UNREACHABLE, f"no connection to {url}: TLS failed: {cause.reason or _said(cause)}"
        cause = cause.__cause__ or cause.__context__
    return Trouble.UNREACHABLE, f"no connection to {url}: {_said(error)}"


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
