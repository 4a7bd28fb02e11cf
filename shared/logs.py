"""Log lines of a service: text for people, or one JSON object a line with ``LOG_FORMAT=json``.

Either way a line carries what it is about (``about``): the search, the candidate, the record, the trace. The names
travel in a context variable, so code that logs need not know them, and tasks started meanwhile inherit them.

Passwords, tokens and keys are replaced by ``…`` wherever a message or a traceback would show one
(``shared/redaction.py``).
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from shared import timestamps, tracing
from shared.redaction import Redaction

FORMATS = ("text", "json")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
DRIVERS = ("aiokafka", "grpc", "httpx", "motor", "opentelemetry", "pymongo", "redis")
"""Libraries that tell much at INFO; theirs begins at WARNING unless ``LOG_LEVEL`` asks for DEBUG."""

_about: ContextVar[Mapping[str, str]] = ContextVar("about", default={})  # noqa: B039 - replaced, never changed


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Read from the environment without a prefix."""

    log_format: str = "text"
    """``LOG_FORMAT``: ``text`` or ``json``."""
    log_level: str = "INFO"
    """``LOG_LEVEL``: the least that is written."""

    def __post_init__(self) -> None:
        if self.log_format not in FORMATS:
            raise ValueError(f"LOG_FORMAT is {self.log_format!r}, expected one of: {', '.join(FORMATS)}")
        if self.log_level.upper() not in LEVELS:
            raise ValueError(f"LOG_LEVEL is {self.log_level!r}, expected one of: {', '.join(LEVELS)}")


@contextmanager
def about(**names: str) -> Iterator[None]:
    """Lines written in the block carry ``names`` too."""
    token = _about.set({**_about.get(), **names})
    try:
        yield
    finally:
        _about.reset(token)


@contextmanager
def written(settings: LogSettings, to: logging.Handler | None = None) -> Iterator[None]:
    """Write what is logged in the block: to standard error, or where ``to`` writes, which is closed then."""
    handler = to or logging.StreamHandler()
    redact = Redaction(os.environ)
    handler.setFormatter(JsonLines(redact) if settings.log_format == "json" else TextLines(redact))
    level = settings.log_level.upper()
    quiet = {name: logging.getLogger(name).level for name in DRIVERS if level != "DEBUG"}
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level)
    for name in quiet:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        for name, own in quiet.items():
            logging.getLogger(name).setLevel(own)
        handler.close()


class TextLines(logging.Formatter):
    """``2026-01-31T23:59:59.000Z INFO shared.consume: message [search_id=… trace_id=…]``"""

    def __init__(self, redact: Redaction) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        names = " ".join(f"{name}={value}" for name, value in _names().items())
        message = self._redact(record.getMessage())
        line = f"{_time(record)} {record.levelname} {record.name}: {message}" + (f" [{names}]" if names else "")
        trouble = _trouble(self, record)
        return f"{line}\n{self._redact(trouble)}" if trouble else line


class JsonLines(logging.Formatter):
    """One object a line: ``time level logger message``, what it is about, and ``exception`` where there was one."""

    def __init__(self, redact: Redaction) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self._redact(record.getMessage()),
            **_names(),
        }
        if trouble := _trouble(self, record):
            line["exception"] = self._redact(trouble)
        return json.dumps(line, ensure_ascii=False)


def _names() -> dict[str, str]:
    return {**_about.get(), **tracing.current_ids()}


def _time(record: logging.LogRecord) -> str:
    return timestamps.to_text(round(record.created * 1e3) * 1_000_000)[:-7] + "Z"


def _trouble(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [formatter.formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(parts)
