"""The program of the build box for hosted kernels: run a module so that its extensions are compiled, and hand them out.

Everything in this process may be the candidate's doing: what it hands out is checked by the controller
(``toolchains.extension_archive``), and its exit status and its words are a candidate's words.

The module is run once. Extensions that it would only build later, in a constructor or on first use, are built too:
the statements before such a call that need neither arguments nor inputs are run, then the call.

    python extension_builder.py MODULE DIRECTORY DESCRIPTOR BEGUN
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import struct
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

sys.path.insert(0, str(Path(__file__).parents[2]))
from evaluator_svc.hosted import extensions

HERE = Path(__file__).parent
LEAN_HEADERS = HERE / "headers"
"""A smaller ``torch/extension.h``: 18 s a compilation become 11 s of the 30 s that the whole one takes."""
MAGIC = b"KEEXT001"
COMPILE_FAILED = 3
CALLS = ("load_inline", "load")
MODULE = "kernel"


def main() -> int:
    """Exit status 0 when nothing was refused, ``COMPILE_FAILED`` when no extension could be built."""
    module, directory, descriptor, begun = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    builder = Builder(directory)
    extensions.replace(builder.load_inline, builder.load)
    os.write(begun, b"1")  # from here on whatever goes wrong is the module's doing
    os.close(begun)
    failure = builder.run(module)
    builder.finish(module.read_text(encoding="utf-8"))
    hand_out(builder.built, descriptor)
    if builder.failed and not builder.built:
        print(builder.failed[0], file=sys.stderr)
        return COMPILE_FAILED
    if failure:  # its own affair: loading it in the runner will tell, where there may be what is missing here
        print(failure, file=sys.stderr)
    return 0


class Builder:
    """Builds each extension once, by torch's own machinery, and remembers where its library lies."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._torch = cpp_extension.load_inline, cpp_extension.load
        self._names: dict[str, Any] = {}
        self.built: dict[str, Path] = {}
        self.failed: list[str] = []

    def load_inline(self, *args: Any, **kwargs: Any) -> Any:
        return self._build(self._torch[0], *extensions.inline_key(args, kwargs))

    def load(self, *args: Any, **kwargs: Any) -> Any:
        return self._build(self._torch[1], *extensions.files_key(args, kwargs))

    def run(self, module: Path) -> str:
        """Run the module; what it raised, empty for nothing."""
        loader = importlib.machinery.SourceFileLoader(MODULE, str(module))
        spec = importlib.util.spec_from_file_location(MODULE, module, loader=loader)
        assert spec is not None
        loaded = sys.modules[MODULE] = importlib.util.module_from_spec(spec)
        self._names = vars(loaded)
        try:
            loader.exec_module(loaded)
        except (Exception, SystemExit):  # noqa: BLE001 - a candidate's text may raise anything
            return traceback.format_exc(limit=-3)
        return ""

    def finish(self, source: str) -> None:
        """Build what the module would build later."""
        tree = ast.parse(source)
        builders = _builders(tree)
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and any(_calls(function, builders)):
                names = dict(self._names)
                for statement in _simple(function.body):
                    _run(statement, names, builders)

    def _build(self, build: Callable[..., Any], key: str, given: Mapping[str, Any]) -> Any:
        if given.get("cuda_sources") and torch.version.cuda is None:
            self.failed.append("error: cuda_sources need a torch built for CUDA")
            raise RuntimeError(self.failed[-1])
        lean = {**given, "extra_include_paths": [str(LEAN_HEADERS), *(given["extra_include_paths"] or [])]}
        try:
            made, where = self._attempt(build, lean, f"{key}.lean")
        except (RuntimeError, ImportError, OSError):  # it may need what only the whole header declares
            try:
                made, where = self._attempt(build, given, key)
            except (RuntimeError, ImportError, OSError) as error:
                self.failed.append(str(error))
                raise
        for library in where.glob("*.so"):
            self.built[key] = library
        return made

    def _attempt(self, build: Callable[..., Any], given: Mapping[str, Any], name: str) -> tuple[Any, Path]:
        where = self._directory / name
        where.mkdir(exist_ok=True)
        # torch renames an extension whose name it has built before; every one has a directory of its own here.
        cpp_extension.JIT_EXTENSION_VERSIONER.entries.pop(given["name"], None)
        own = {name: list(value) if isinstance(value, list) else value for name, value in given.items()}
        try:
            return build(**{**own, "build_directory": str(where)}), where
        except (ImportError, OSError):
            if not any(where.glob("*.so")):
                raise
            # Built, and not loadable here, where no driver is. Loading it in the runner will tell what is wrong.
            return _Unloaded(given["name"]), where


class _Unloaded(types.ModuleType):
    """In the place of an extension whose functions nobody calls before it runs."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None  # noqa: ARG005


def hand_out(built: Mapping[str, Path], descriptor: int) -> None:
    """Write the libraries in the form that ``toolchains.extension_archive`` reads."""
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(MAGIC + struct.pack("<I", len(built)))
        for key, library in sorted(built.items()):
            name, data = library.stem.encode(), library.read_bytes()
            file.write(struct.pack("<64sHQ", key.encode(), len(name), len(data)) + name + data)


def _builders(tree: ast.Module) -> set[str]:
    """Names of what builds an extension when it is called, directly or through others: functions, and classes."""
    found, before = set(CALLS), 0
    while len(found) > before:
        before = len(found)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__") and any(_calls(node, found)):
                found.add(node.name)
            elif isinstance(node, ast.ClassDef):
                constructors = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
                found |= {node.name for one in constructors if any(_calls(one, found))}
    return found


def _calls(node: ast.AST, builders: set[str]) -> Iterator[ast.Call]:
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and ast.unparse(one.func).rpartition(".")[2] in builders:
            yield one


def _simple(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body in order, those inside conditions and loops too, once each."""
    for statement in body:
        inside = [part for name in ("body", "orelse", "finalbody") for part in getattr(statement, name, [])]
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        yield from _simple(inside) if inside else [statement]


def _run(statement: ast.stmt, names: dict[str, Any], builders: set[str]) -> None:
    """Run what binds a name; of anything else, only the calls that build."""
    assigned = isinstance(statement, ast.Assign) and all(isinstance(one, ast.Name) for one in statement.targets)
    if assigned or isinstance(statement, ast.Import | ast.ImportFrom):
        with suppress(Exception, SystemExit):
            exec(compile(ast.Module([statement], []), MODULE, "exec"), names)  # noqa: S102 - in the candidate's box
        return
    for call in _calls(statement, builders):
        with suppress(Exception, SystemExit):
            eval(compile(ast.Expression(call), MODULE, "eval"), names)  # noqa: S307 - in the candidate's box


if __name__ == "__main__":
    sys.exit(main())
