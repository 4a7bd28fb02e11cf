"""Several files as one text: a package whose modules are imported from memory. Pasted into a solution's module.

Its files find each other as they did in a directory: relatively (``from .tiles import pick``), as flashinfer-bench
installs them, and by their own names (``import tiles``), as SOL-ExecBench does. Either way a file is one module.
Tracebacks and ``inspect`` see the files' own names and lines. Files are written to a private directory only when one
of them is not Python: what reads ``__file__``'s neighbours, or compiles them, finds them there.
"""

import importlib
import importlib.abc
import importlib.util
import linecache
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


class EmbeddedPackage(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the modules of ``files`` (relative path: text) as those of ``package``."""

    def __init__(self, package: str, files: Mapping[str, str]) -> None:
        self.package = package
        self.directory = Path(package)
        if any(not path.endswith(".py") for path in files):
            self.directory = Path(tempfile.gettempdir(), package)
            self._write(files)
        self._modules = {"": ("__init__.py", "", True)}
        """By name within the package: path, text, and whether it holds others."""
        for path, text in files.items():
            if path.endswith(".py"):
                parts = path[: -len(".py")].split("/")
                holds = parts[-1] == "__init__"
                self._modules[".".join(parts[:-1] if holds else parts)] = (path, text, holds)
        for name in list(self._modules):
            above = name.split(".")[:-1]
            while above:  # a directory without __init__.py is a package as well
                self._modules.setdefault(".".join(above), ("/".join([*above, "__init__.py"]), "", True))
                above.pop()
        sys.meta_path.insert(0, self)

    def entry(self, path: str, name: str) -> Callable[..., Any]:
        """The function ``name`` of the file ``path``."""
        inner = path[: -len(".py")].replace("/", ".")
        function: Callable[..., Any] = getattr(importlib.import_module(f"{self.package}.{inner}"), name)
        return function

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        inner = self._inner(fullname)
        if inner is None:
            return None
        file, _, holds = self._modules[inner]
        spec = ModuleSpec(fullname, self, origin=str(self.directory / file), is_package=holds)
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        full = f"{self.package}.{self._inner(spec.name)}"
        if spec.name in (full, self.package):
            return None
        module = importlib.import_module(full)  # its own name is another name of the same module
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        if spec.loader_state is not None:
            module.__spec__ = spec.loader_state
            return
        text = self.get_source(spec.name)
        linecache.cache[spec.origin] = (len(text), None, text.splitlines(keepends=True), spec.origin)
        exec(compile(text, spec.origin, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - its own files

    def get_source(self, fullname: str) -> str:
        return self._modules[self._inner(fullname) or ""][1]

    def _inner(self, fullname: str) -> str | None:
        """The module's name within the package, or None when it is not of it."""
        if fullname == self.package:
            return ""
        inner = fullname.removeprefix(f"{self.package}.")
        return inner if inner in self._modules and inner else None

    def _write(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            target = self.directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
