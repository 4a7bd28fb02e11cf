"""Which endpoints there are: from a TOML file, or one from variables. Keys are read here, once, and never shown.

::

    [endpoints.large]                        # the name is what reports and moves show
    url = "https://api.example.com/v1"
    model = "vendor-large-2"
    key_env = "VENDOR_API_KEY"               # or key_file = "/run/secrets/vendor"; a key itself is refused
    weight = 1
    prices = { input = 3_000_000, output = 15_000_000, currency = "EUR" }

    [endpoints.local]
    url = "http://127.0.0.1:8080/v1"
    model = "qwen"
    server = "llama.cpp"
    prices = { input = 0, output = 0 }
    capabilities = { context_tokens = 32_768 }
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from shared.errors import UserError
from shared.redaction import never_show
from synthesizer_svc.model.capabilities import Capabilities, Protocol
from synthesizer_svc.model.presets import PRESETS, preset_for
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.secret import Secret
from synthesizer_svc.model.tables import choice, of_kind, record

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHORT_FORM = "default"
"""Name of the endpoint that ``MODEL_URL`` names."""
VARIABLES = "MODEL_*"
"""Where that endpoint's options stand."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_VISIBLE = re.compile(r"[!-~]+")


class Authentication(StrEnum):
    """The header that carries the key."""

    BEARER = "bearer"
    X_API_KEY = "x-api-key"
    API_KEY = "api-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """One endpoint as configured.

    Raises:
        ValueError: a limit that is not positive, or a sampling value for a field that is not accepted.
    """

    name: str
    url: str
    """Up to the version, e.g. ``https://api.example.com/v1``."""
    model: str
    server: str = "compatible"
    """Whose documentation ``capabilities`` began with."""
    capabilities: Capabilities = field(default_factory=Capabilities)
    prices: Prices = field(default_factory=Prices)
    key: Secret | None = None
    key_env: str = ""
    """Name of the variable that ``key`` was read from."""
    key_file: str = ""
    authentication: Authentication = Authentication.BEARER
    sampling: Mapping[str, float] = field(default_factory=dict)
    """Sent with every question; empty leaves them to the endpoint."""
    weight: int = 1
    """Share of the questions before results say otherwise, relative to the other endpoints'."""
    concurrency: int = 8
    """Questions at once, by all replicas together."""
    connect_s: float = 10.0
    silence_s: float = 120.0
    """Longest time without a byte, the first one's included: a local model may take long over a prompt."""
    ca: str = ""
    """Authorities to trust instead of the usual ones, PEM file."""
    plaintext: bool = False
    """Whether the key may travel without TLS beyond loopback."""

    def __post_init__(self) -> None:
        if min(self.weight, self.concurrency) < 1 or min(self.connect_s, self.silence_s) <= 0:
            raise ValueError("limits must be positive")
        refused = set(self.sampling) - set(self.capabilities.sampling)
        if refused:
            raise ValueError(
                f"sampling sets {', '.join(sorted(refused))}, which capabilities.sampling says is not accepted"
            )


_OWN = {
    "url": str, "model": str, "server": str, "protocol": str, "key_env": str, "key_file": str, "authentication": str,
    "weight": int, "concurrency": int, "connect_s": float, "silence_s": float, "ca": str, "allow_plaintext": bool,
    "sampling": dict, "capabilities": dict, "prices": dict,
}  # fmt: skip


def read(path: Path, environment: Mapping[str, str]) -> tuple[EndpointSettings, ...]:
    """The endpoints of a file, in its order.

    Raises:
        UserError: the first thing wrong with it.
    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror}", where=str(path), hint="MODEL_ENDPOINTS names a TOML file"
        ) from error
    except ValueError as error:
        raise UserError(f"is not TOML: {error}", where=str(path)) from error
    endpoints = told.pop("endpoints", {})
    if told or not isinstance(endpoints, dict) or not endpoints:
        what = f"has `{next(iter(told))}`" if told else "names no endpoint"
        raise UserError(what, where=str(path), hint="every table is [endpoints.NAME]")
    currencies = set()
    found = []
    for name, table in endpoints.items():
        where = f"{path}: endpoints.{name}"
        if not isinstance(table, dict) or not NAME.fullmatch(name):
            raise UserError("is not a table with a name of a-z, 0-9, `.`, `_`, `-`", where=where)
        endpoint = _endpoint(name, table, where, environment)
        if endpoint.prices.known:
            currencies.add(endpoint.prices.currency)
        found.append(endpoint)
    if len(currencies) > 1:
        raise UserError(f"prices are in {' and '.join(sorted(currencies))}: sums need one", where=str(path))
    return tuple(found)


def short_form(
    *,
    url: str,
    model: str,
    protocol: str = "",
    ca: str = "",
    allow_plaintext: bool = False,
    prices: Mapping[str, int | str] | None = None,
    environment: Mapping[str, str],
) -> EndpointSettings:
    """The one endpoint that ``MODEL_URL``, ``MODEL_NAME``, ``MODEL_PROTOCOL`` and ``MODEL_API_KEY`` describe.

    ``prices`` are a table as in a file.

    Raises:
        UserError: names the variable.
    """
    table: dict[str, object] = {"url": url, "model": model, "ca": ca, "allow_plaintext": allow_plaintext}
    if protocol:
        table["protocol"] = protocol
    if environment.get("MODEL_API_KEY", "").strip():
        table["key_env"] = "MODEL_API_KEY"
    if prices:
        table["prices"] = dict(prices)
    if not model:
        hint = "the model's name as the endpoint knows it; a local server takes any"
        raise UserError("is not set", where="MODEL_NAME", hint=hint)
    return _endpoint(SHORT_FORM, table, VARIABLES, environment)


def _endpoint(name: str, table: Mapping[str, Any], where: str, environment: Mapping[str, str]) -> EndpointSettings:
    given = _checked(table, _OWN, where)
    for needed in ("url", "model"):
        if not given.get(needed):
            raise UserError(f"has no {needed}", where=where)
    key = _key(given, where, environment)
    _check_url(given["url"], where, key, allow_plaintext=given.get("allow_plaintext", False))
    protocol = choice(Protocol, given["protocol"], _option(where, "protocol")) if "protocol" in given else None
    server = given.get("server") or preset_for(given["url"], protocol)
    if server not in PRESETS:
        raise UserError(f"unknown server `{server}`", where=where, hint=f"known: {', '.join(PRESETS)}")
    base = PRESETS[server] if protocol is None else replace(PRESETS[server], protocol=protocol)
    capabilities = record(Capabilities, base, given.get("capabilities", {}), f"{where}.capabilities")
    prices = record(Prices, Prices(), given.get("prices", {}), f"{where}.prices")
    usual = Authentication.X_API_KEY if capabilities.protocol is Protocol.ANTHROPIC else Authentication.BEARER
    authentication = given.get("authentication", usual.value)
    try:
        return EndpointSettings(
            name=name,
            url=given["url"].rstrip("/"),
            server=server,
            capabilities=capabilities,
            prices=prices,
            key=key,
            authentication=choice(Authentication, authentication, f"{where}: authentication"),
            sampling=_sampling(given.get("sampling", {}), where),
            plaintext=given.get("allow_plaintext", False),
            **{
                option: given[option]
                for option in ("model", "key_env", "key_file", "weight", "concurrency", "connect_s", "silence_s", "ca")
                if option in given
            },
        )
    except ValueError as error:
        raise UserError(str(error), where=where) from error


def _option(where: str, option: str) -> str:
    """An option in the table ``where``, or as a variable of the short form."""
    return f"{where}: {option}" if where != VARIABLES else f"MODEL_{option.upper()}"


def _checked(table: Mapping[str, Any], kinds: Mapping[str, type], where: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for option, value in table.items():
        if option in ("key", "api_key", "token"):
            hint = "name the variable (key_env) or file (key_file) that holds it"
            raise UserError(f"holds a {option}: files get copied and committed", where=where, hint=hint)
        if option not in kinds:
            raise UserError(f"unknown option `{option}`", where=where, hint=f"known: {', '.join(kinds)}")
        given[option] = of_kind(value, kinds[option], f"{where}: {option}")
    return given


def _sampling(table: Mapping[str, Any], where: str) -> dict[str, float]:
    return {
        name: value if type(value) is int else of_kind(value, float, f"{where}.sampling: {name}")
        for name, value in table.items()
    }


def _key(given: Mapping[str, Any], where: str, environment: Mapping[str, str]) -> Secret | None:
    variable, file = given.get("key_env", ""), given.get("key_file", "")
    if variable and file:
        raise UserError("has both key_env and key_file", where=where)
    if variable and not _VARIABLE.fullmatch(variable):
        raise UserError("is no name of a variable, in capitals", where=f"{where}: key_env")  # perhaps the key itself
    if variable:
        text, source = (
            environment.get(variable, ""),
            f"{where}: key_env: {variable}" if where != VARIABLES else variable,
        )
    elif file:
        source = f"{where}: key_file{f': {file}' if '/' in file else ''}"  # without one, perhaps the key itself
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UserError(f"cannot be read: {type(error).__name__}", where=source) from None
    else:
        return None
    if not text.strip():
        raise UserError("is empty" if file else "is not set", where=source)
    if not _VISIBLE.fullmatch(text.strip()):
        raise UserError("holds what no key has: spaces, line ends or letters beyond ASCII", where=source)
    never_show(text.strip())
    return Secret(text.strip())


def _check_url(url: str, where: str, key: Secret | None, *, allow_plaintext: bool) -> None:
    """A URL must not carry secrets, because it is shown; and a key must not travel in the open."""
    where = _option(where, "url")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise UserError("is no address: it holds blanks or line ends", where=where)
    parts = _split(url, where)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError("is no http:// or https:// address", where=where)
    if "@" in parts.netloc:
        raise UserError("carries a user or password", where=where, hint="give the key by key_env or MODEL_API_KEY")
    if parts.query or parts.fragment:
        raise UserError("carries a query: leave out what follows `?` or `#`", where=where)
    if parts.path.rstrip("/").endswith(("/chat/completions", "/messages")):
        raise UserError("names a method: end it with the version, as in https://host/v1", where=where)
    if key and parts.scheme == "http" and parts.hostname not in LOOPBACK and not allow_plaintext:
        raise UserError(
            f"the key would go to {parts.hostname} without TLS", where=where, hint="use https://, or allow_plaintext"
        )


def _split(url: str, where: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UserError("is no address", where=where) from None
    return parts
