"""What a failed answer means: whether asking again can help, when, and whether the endpoint or the question is at fault
(pure).

Classified by the error's own code or type before its status: one status stands for opposite things (429: "slow down"
and "nobody has paid"). Error bodies come as ``{"error": {…}}`` (OpenAI, Anthropic, vLLM, llama.cpp), flat (SGLang,
older vLLM), as ``{"error": "text"}`` (SGLang's 401), as a list of one (Google), as ``{"detail": …}`` (FastAPI), or as
HTML of a proxy; codes are numbers or words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import mktime_tz, parsedate_tz

from shared.events import Usage
from synthesizer_svc.model import ModelErrorCode
from synthesizer_svc.model.exchange import Head, TransportFault, Trouble

DETAIL_CHARS = 400
"""Of what an endpoint says, in errors and events."""


@dataclass(eq=False)
class Fault(Exception):
    """One attempt without an answer."""

    code: ModelErrorCode
    detail: str
    again: bool = False
    """Whether another attempt may succeed."""
    retry_after_s: float = 0.0
    """What the endpoint asks to wait for; 0 when it says nothing."""
    hopeless: bool = False
    """No question to this endpoint can succeed until somebody acts."""
    ailing: bool = False
    """It speaks against the endpoint's health, not against the question."""
    usage: Usage = field(default_factory=lambda: Usage(requests=1))
    """What the attempt cost."""
    parameter: str = ""
    """The field of the request that the endpoint names as refused."""
    hint: str = ""
    """How to mend it; apart from ``detail``, whose end may have been cut within a key."""

    def __str__(self) -> str:
        return f"{self.code}: {self.told}"

    @property
    def told(self) -> str:
        """What is wrong, and how to mend it."""
        return f"{self.detail} ({self.hint})" if self.hint else self.detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An error as an endpoint tells it. ``status`` is 0 inside an answer of 200 that names none."""

    status: int
    message: str = ""
    words: frozenset[str] = frozenset()
    """Codes and types, in lower case."""
    parameter: str = ""


_SPEND_LIMIT = (
    "insufficient_quota", "credit_balance", "spend_limit", "usage_limit_exceeded", "billing", "insufficient_balance",
    "insufficient_credits", "payment_required",
)  # fmt: skip
_CREDENTIALS = ("invalid_api_key", "authentication_error", "permission_error", "permission_denied", "unauthorized")
_CONTEXT = ("context_length_exceeded", "exceed_context_size", "context_window_exceeded", "string_above_max_length")
_FILTER = ("content_filter", "content_policy", "responsibleaipolicy", "moderation")
_NO_MODEL = ("model_not_found", "not_found_error", "deploymentnotfound")
_BUSY = ("rate_limit", "slow_down", "too_many_requests")
_AILING = (
    "overloaded", "server_error", "api_error", "timeout_error", "unavailable", "internal_error", "internalservererror",
    "service_unavailable",
)  # fmt: skip

_CREDIT_MESSAGES = ("credit balance is too low", "exceeded your current quota")
_CONTEXT_MESSAGES = (
    "maximum context length", "prompt is too long", "context window", "exceeds the available context",
    "input is too long", "model's context length", "context size",
)  # fmt: skip

KEY_REFUSED = "the key is what MODEL_API_KEY holds, or the endpoint's key_env or key_file"
UNTRUSTED = "authorities to trust: MODEL_CA, or the endpoint's ca"
NOT_FOUND = (
    "the URL has to end with the version, as in https://host/v1, and the model has to be one that is served there"
)
_LATER = {408, 409, 425, 429}


def refused(head: Head, body: bytes, now_s: float) -> Fault:
    """The fault of an answer whose status is not 200. ``now_s``: wall time, for dates in ``retry-after``."""
    told = read(body, head.status)
    if 300 <= head.status < 400:
        return Fault(
            ModelErrorCode.REJECTED, f"answers with a redirect ({head.status}), which is not followed", hopeless=True
        )
    fault = classified(told)
    fault.retry_after_s = retry_after_s(head.headers, now_s)
    if head.headers.get("x-should-retry", "").lower() == "false":
        fault.again = False
    return fault


def classified(told: Told) -> Fault:
    """The fault that ``told`` stands for."""
    said = told.message or "no explanation"
    detail = shortened(f"{told.status} {said}" if told.status else said)
    if _any(told, _SPEND_LIMIT) or told.status == 402 or _says(told, _CREDIT_MESSAGES):
        return Fault(ModelErrorCode.SPEND_LIMIT, detail, hopeless=True)
    if _any(told, _CONTEXT) or told.status == 413 or (told.status in (0, 400, 422) and _says(told, _CONTEXT_MESSAGES)):
        return Fault(ModelErrorCode.CONTEXT, detail)
    if _any(told, _FILTER):
        return Fault(ModelErrorCode.REFUSED, detail)
    if told.status == 401 or _any(told, _CREDENTIALS) or told.status == 403:
        return Fault(ModelErrorCode.CREDENTIALS, detail, hint=KEY_REFUSED, hopeless=True)
    if told.status == 429 or _any(told, _BUSY):
        return Fault(ModelErrorCode.ENDPOINT, detail, again=True)
    if told.status in _LATER or (told.status >= 500 and told.status != 501) or _any(told, _AILING):
        return Fault(ModelErrorCode.ENDPOINT, detail, again=True, ailing=True)
    if told.status == 404 or _any(told, _NO_MODEL):
        return Fault(ModelErrorCode.REJECTED, detail, hint=NOT_FOUND, hopeless=True)
    if told.status:
        return Fault(ModelErrorCode.REJECTED, detail, parameter=told.parameter)
    return Fault(ModelErrorCode.ENDPOINT, detail, again=True, ailing=True)


def broken(error: TransportFault) -> Fault:
    """The fault of an exchange that did not end; what it cost is the reader's to say."""
    match error.trouble:
        case Trouble.LATE:
            return Fault(ModelErrorCode.DEADLINE, error.detail, ailing=True)
        case Trouble.UNTRUSTED:
            detail = shortened(f"its certificate is not trusted: {error.detail}")
            return Fault(ModelErrorCode.ENDPOINT, detail, hint=UNTRUSTED, ailing=True, hopeless=True)
        case Trouble.TOO_LONG | Trouble.ENCODED:
            return Fault(ModelErrorCode.ANSWER, shortened(error.detail), ailing=True)
        case Trouble.UNREACHABLE | Trouble.CUT | Trouble.SILENT:
            return Fault(ModelErrorCode.ENDPOINT, shortened(error.detail), again=True, ailing=True)


def garbled(detail: str) -> Fault:
    """The fault of an answer that is none of its protocol."""
    return Fault(ModelErrorCode.ANSWER, shortened(detail), again=True, ailing=True)


def read(body: bytes, status: int = 0) -> Told:
    """An error body of any of the forms above; never raises."""
    text = body.decode("utf-8", errors="replace")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return Told(status=status, message=text)
    return within(told, status)


def within(told: object, status: int = 0) -> Told:
    """``read`` of what is parsed already, e.g. an event of a stream."""
    if isinstance(told, list) and told:
        told = told[0]
    if not isinstance(told, dict):
        return Told(status=status, message=told if isinstance(told, str) else "")
    error = told.get("error", told.get("detail", told))
    if isinstance(error, list) and error:
        error = error[0]
    if not isinstance(error, dict):
        return Told(status=status, message=error if isinstance(error, str) else "", words=_words(told))
    inner = error.get("details")
    words = _words(error) | (_words(inner) if isinstance(inner, dict) else frozenset())
    message = error.get("message", error.get("msg"))
    parameter, location = error.get("param"), error.get("loc")
    if isinstance(location, list):  # FastAPI names the field so
        parameter = ".".join(str(part) for part in location if isinstance(part, str | int))
    return Told(
        status=status or _as_status(error.get("code")),
        message=message if isinstance(message, str) else "",
        words=words,
        parameter=parameter if isinstance(parameter, str) else "",
    )


def is_error(told: Mapping[str, object]) -> bool:
    """Whether an answer of 200, or an event of its stream, is an error all the same."""
    return bool(told.get("error")) or told.get("object") == "error" or told.get("type") == "error"


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float:
    """What the endpoint asks to wait for; 0 for nothing, or for what makes no sense: the past, no number, -1."""
    milliseconds = _positive(headers.get("retry-after-ms", ""))
    if milliseconds:
        return milliseconds / 1e3
    told = headers.get("retry-after", "")
    seconds = _positive(told)
    if seconds:
        return seconds
    date = parsedate_tz(told) if told else None
    if date is None:
        return 0.0
    try:
        return max(0.0, mktime_tz(date) - now_s)
    except (ValueError, OverflowError):
        return 0.0


def shortened(text: str) -> str:
    """One line of at most ``DETAIL_CHARS`` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: DETAIL_CHARS * 4]).split())
    return line if len(line) <= DETAIL_CHARS else line[: DETAIL_CHARS - 1] + "…"


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0


def _words(error: Mapping[str, object]) -> frozenset[str]:
    named = (error.get(key) for key in ("code", "type", "status", "error_code"))
    return frozenset(word.lower() for word in named if isinstance(word, str))


def _as_status(code: object) -> int:
    if isinstance(code, str) and code.isdecimal():
        code = int(code[:4])
    return code if isinstance(code, int) and 400 <= code < 600 else 0


def _any(told: Told, families: tuple[str, ...]) -> bool:
    return any(family in word for word in told.words for family in families)


def _says(told: Told, phrases: tuple[str, ...]) -> bool:
    message = told.message.lower()
    return any(phrase in message for phrase in phrases)
