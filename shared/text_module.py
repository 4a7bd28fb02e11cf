"""A module of somebody's text, run in a child process that is there for it."""

from __future__ import annotations

import linecache
import sys
import types


def executed(text: str, name: str, file: str) -> types.ModuleType:
    """The module ``name`` that ``text`` makes; ``file`` is what tracebacks call it.

    Raises:
        Exception: whatever the text raises.
    """
    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses and torch.compile look a class's module up there
    # Compilers of Python functions (torch.jit, triton) ask for their text.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), module.__dict__)  # noqa: S102 - that is what the process is for
    return module
