"""Extensions of a hosted kernel, compiled beforehand: ``load_inline`` and ``load`` find them instead of compiling.

Runs in a candidate's process, and in the build box, which asks it what an extension is called. An extension's key is
the hash of what it is made of, so that a name that two candidates share, or one candidate gives twice, never fetches
the wrong library.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import inspect
import json
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

from evaluator_svc.hosted.extension_calls import CALLS

IRRELEVANT = ("build_directory", "verbose", "keep_intermediates", "use_pch", "extra_include_paths")
"""Arguments that do not change what is built, or name places, which differ between the build box and the runner."""

_load_inline, _load = inspect.signature(cpp_extension.load_inline), inspect.signature(cpp_extension.load)


class NotBuilt(RuntimeError):
    """The build box has built no extension of this content."""


def install(directory: Path | None) -> None:
    """Let ``torch.utils.cpp_extension`` find the libraries of ``directory`` (None: there are none).

    To be called before the candidate's text runs, which may then import the functions by any name.
    """

    def load_inline(*args: Any, **kwargs: Any) -> Any:
        return _found(directory, *inline_key(args, kwargs))

    def load(*args: Any, **kwargs: Any) -> Any:
        return _found(directory, *files_key(args, kwargs))

    replace(load_inline, load)


def replace(load_inline: Callable[..., Any], load: Callable[..., Any]) -> None:
    """Put the two in the place of torch's."""
    cpp_extension.load_inline, cpp_extension.load = load_inline, load


def inline_key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The key of an extension made of strings, and its arguments by name.

    Raises:
        TypeError: arguments that torch's function does not take.
    """
    given = _arguments(_load_inline, args, kwargs)
    return _digest("inline", given), given


def files_key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The key of an extension made of files: their contents count, their places do not.

    Raises:
        OSError: a file cannot be read.
        TypeError: arguments that torch's function does not take.
    """
    given = _arguments(_load, args, kwargs)
    sources = [given["sources"]] if isinstance(given["sources"], str) else list(given["sources"])
    contents = [[Path(path).name, Path(path).read_text(errors="replace")] for path in sources]
    return _digest("files", {**given, "sources": contents}), given


def _arguments(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    # torch's function changes the lists that it is given
    return {name: list(value) if isinstance(value, list | tuple) else value for name, value in bound.arguments.items()}


def _digest(kind: str, given: Mapping[str, Any]) -> str:
    telling = {name: value for name, value in given.items() if name not in IRRELEVANT}
    for name in ("cpp_sources", "cuda_sources", "functions"):
        if isinstance(telling.get(name), str):
            telling[name] = [telling[name]]
    return hashlib.sha256(json.dumps([kind, telling], sort_keys=True, default=str).encode()).hexdigest()


def _found(directory: Path | None, key: str, given: Mapping[str, Any]) -> Any:
    library = next(directory.glob(f"{key}.*.so"), None) if directory is not None else None
    if library is None:
        raise NotBuilt(
            f"extension `{given['name']}` was not built beforehand: no compiler runs beside a kernel, so what an "
            f"extension is made of must not depend on inputs"
        )
    if not given["is_python_module"]:
        torch.ops.load_library(library)  # type: ignore[no-untyped-call]
        return None
    name = library.name.split(".")[1]
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return _counted(module, name)


def _counted(module: types.ModuleType, known_as: str) -> types.ModuleType:
    """``module`` with every function counting its calls, at the cost of one Python call (some 0.1 us) each."""
    counted = types.ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if isinstance(value, type):
            _count_methods(value, f"{known_as}.{name}")
        counts = callable(value) and not isinstance(value, type)
        setattr(counted, name, _counting(value, f"{known_as}.{name}") if counts else value)
    return counted


def _count_methods(cls: type, name: str) -> None:
    for attribute, method in list(vars(cls).items()):
        if callable(method) and not isinstance(method, type) and not attribute.startswith("__"):
            setattr(cls, attribute, _counting(method, f"{name}.{attribute}"))


def _counting(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS[name] += 1
        return function(*args, **kwargs)

    call.__name__, call.__doc__ = name.rpartition(".")[2], function.__doc__
    return call
