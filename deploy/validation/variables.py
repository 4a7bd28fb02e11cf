"""Which environment variables the program reads, found in its source.

``from_env(Limits, environment, "EVALUATOR_")`` reads one variable per field of ``Limits``; ``environment.get("NAME")``
reads one. A name that is in no such place is read by nobody.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("shared", "search_svc", "synthesizer_svc", "evaluator_svc", "knowledge_svc", "cli")
LIBRARIES = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "read by opentelemetry",
    "OTEL_EXPORTER_OTLP_HEADERS": "read by opentelemetry",
    "OTEL_RESOURCE_ATTRIBUTES": "read by opentelemetry",
}
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A settings class and the prefix of its variables."""

    owner: type[Any]
    prefix: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.prefix + field.name.upper() for field in fields(self.owner))


@cache
def readings() -> tuple[Reading, ...]:
    """Every settings class that is read from the environment."""
    found = {}
    for path, tree in _sources():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _name(call.func) == "from_env" and call.args:
                reading = _reading(path, tree, call)
                if reading is not None:
                    found[reading.owner, reading.prefix] = reading
    return tuple(found.values())


@cache
def known() -> frozenset[str]:
    """Every variable that somebody reads."""
    names = set(LIBRARIES)
    for reading in readings():
        names |= reading.names
    for _, tree in _sources():
        names |= set(_literals(tree))
    return frozenset(names)


def _literals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in ("get", "getenv") and node.args:
            key: ast.AST = node.args[0]
        elif isinstance(node, ast.Subscript):
            key = node.slice
        else:
            continue
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isupper():
            yield key.value


@cache
def _sources() -> tuple[tuple[Path, ast.Module], ...]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    texts = ((path, path.read_text(encoding="utf-8")) for path in paths)
    return tuple((path, ast.parse(text)) for path, text in texts if "from_env" in text or "environ" in text)


def _reading(path: Path, tree: ast.Module, call: ast.Call) -> Reading | None:
    owner = _resolve(path, tree, call.args[0])
    if not (isinstance(owner, type) and is_dataclass(owner)):
        return None  # a function of that name in another module: it is looked at itself
    given = [*call.args[2:3], *(word.value for word in call.keywords if word.arg == "prefix")]
    prefix = _resolve(path, tree, given[0]) if given else ""
    if not isinstance(prefix, str):
        raise TypeError(f"{path}:{call.lineno}: the prefix of from_env is no constant")
    return Reading(owner=owner, prefix=prefix)


def _resolve(path: Path, tree: ast.Module, expression: ast.expr) -> object:
    """The value of a name, a dotted name or a constant in a module; None when it is something else."""
    if isinstance(expression, ast.Constant):
        return expression.value
    dotted = ast.unparse(expression).split(".")
    if not all(part.isidentifier() for part in dotted):
        return None
    value = _imported(tree, dotted[0])
    if value is None:
        value = getattr(importlib.import_module(_module(path)), dotted[0], None)
    for part in dotted[1:]:
        value = getattr(value, part, None)
    return value


def _imported(tree: ast.Module, name: str) -> object:
    """What ``name`` is imported as, anywhere in the module, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _member(node.module, alias.name)
    return None


def _member(module: str, name: str) -> object:
    found = getattr(importlib.import_module(module), name, None)
    return importlib.import_module(f"{module}.{name}") if found is None else found


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
