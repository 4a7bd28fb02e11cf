"""Loading an operator's text and checking its form, without running it (pure).

The form is KernelBench's: a module with ``class Model(torch.nn.Module)``, ``get_inputs()`` and ``get_init_inputs()``.
The text is executed only by the trusted oracle and by the synthesizer's capture, each in a process of its own.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from shared import aten, ids
from shared.errors import OperatorError
from shared.events import OperatorRef

KERNELBENCH = "kernelbench"
REQUIRED: dict[str, type[ast.ClassDef | ast.FunctionDef]] = {
    "Model": ast.ClassDef,
    "get_inputs": ast.FunctionDef,
    "get_init_inputs": ast.FunctionDef,
}
SOURCE_BYTES_MAX = 1 << 20
FORMS = "give the path of a KernelBench-style .py file, or a call like `aten::gelu(f32[1024, 1024])`"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSpec:
    """An operator frozen by its text. ``ref.source_hash`` is the hash of ``source`` in UTF-8."""

    ref: OperatorRef
    source: str


def load(path: Path) -> OperatorSpec:
    """Read and check a KernelBench file, or write the one of an ATen function given as ``aten::NAME(…)``.

    Raises:
        OperatorError: missing or unreadable file, syntax error, or a required definition is absent.
    """
    if str(path).startswith(aten.PREFIX):
        name, source = aten.module_text(str(path))
        return parse(source, name=name, where=str(path))
    if not path.exists():
        raise OperatorError("no such file", where=str(path), hint=FORMS)
    if not path.is_file():
        raise OperatorError("is not a file", where=str(path), hint=FORMS)
    if path.stat().st_size > SOURCE_BYTES_MAX:
        raise OperatorError(f"is larger than {SOURCE_BYTES_MAX >> 20} MiB", where=str(path))
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"cannot be read: {error}", where=str(path)) from error
    return parse(source, name=path.stem, where=str(path))


def parse(source: str, *, name: str, where: str = "") -> OperatorSpec:
    """Check the text of an operator; see ``load``."""
    where = where or name
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise OperatorError(
            f"syntax error: {error.msg}", where=f"{where}:{error.lineno}" if error.lineno else where
        ) from error
    except ValueError as error:
        raise OperatorError(f"is not Python: {error}", where=where) from error
    except (MemoryError, RecursionError) as error:  # the parser's own ways of saying so
        raise OperatorError("is nested too deeply", where=where) from error
    for symbol, kind in REQUIRED.items():
        if not any(isinstance(node, kind) and node.name == symbol for node in tree.body):
            what = "class" if kind is ast.ClassDef else "function"
            raise OperatorError(
                f"has no {what} `{symbol}`",
                where=where,
                hint="an operator file defines Model, get_inputs and get_init_inputs, as in KernelBench",
            )
    ref = OperatorRef(name=name, source_hash=ids.content_hash(source.encode()), kind=KERNELBENCH)
    return OperatorSpec(ref=ref, source=source)
