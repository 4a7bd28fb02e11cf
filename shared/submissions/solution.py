"""A solution of flashinfer-bench or SOL-ExecBench: a kernel as files with an entry point (pure).

Formats: https://bench.flashinfer.ai/docs/flashinfer-trace/solution (one ``language``) and ``docs/solution.md`` of
NVIDIA's SOL-ExecBench (``languages``, ``compile_options``). What a solution says of its hardware and dependencies is
kept for the record: it is built and run here, with what is here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from shared.errors import UserError
from shared.submissions import fields, functions
from shared.submissions.definition import Definition
from shared.submissions.functions import Signature, binds, function, signature

PYTHON = frozenset({"python", "pytorch", "triton"})
CPP = frozenset({"cpp"})
CUDA = frozenset({"cuda", "cuda_cpp"})
CPP_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".c", ".cu"})
HOSTED = {"python": "python", "pytorch": "python", "triton": "triton", "cpp": "python", "cuda": "cuda",
          "cuda_cpp": "cuda"}  # fmt: skip
"""Their languages in this project's: a C++ solution is a Python module that builds an extension."""
TORCH_BINDING = "torch"
FILES_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """See the module. ``language`` is theirs; ``files`` maps normal relative paths to texts."""

    name: str
    definition: str
    author: str
    language: str
    files: Mapping[str, str]
    entry_file: str
    entry_function: str
    destination_passing: bool = True
    cflags: tuple[str, ...] = ()
    cuda_cflags: tuple[str, ...] = ()
    ld_flags: tuple[str, ...] = ()
    target_hardware: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()

    @property
    def entry_point(self) -> str:
        return f"{self.entry_file}::{self.entry_function}"

    @property
    def hosted_language(self) -> str:
        """The project's language that it is evaluated in."""
        return HOSTED[self.language]

    @property
    def compiled(self) -> bool:
        return self.language in CPP | CUDA


def parse(data: bytes | str, *, where: str) -> Solution:
    """The solution in ``data``.

    Raises:
        UserError: the JSON is malformed; a field is missing or wrong; the entry point is not in the sources; a path is
            absolute, climbs or occurs twice; the language or binding is not supported.
    """
    raw = fields.parse(data, where)
    spec = fields.need(raw, "spec", dict, where)
    within = f"{where}: spec"
    language = _language(spec, within)
    files = _files(fields.need(raw, "sources", list, where), f"{where}: sources")
    entry = fields.need(spec, "entry_point", str, within)
    file, separator, name = entry.partition("::")
    if not separator or "::" in name or not name.isidentifier():
        raise UserError(f"is {fields.shown(entry)}", where=f"{within}: entry_point", hint="FILE::FUNCTION")
    path = _path(file, f"{within}: entry_point")
    if path not in files:
        raise UserError(
            f"there is no file `{fields.printable(file)}` in sources",
            where=f"{within}: entry_point",
            hint=f"there is {', '.join(files)}",
        )
    options = fields.maybe(spec, "compile_options", dict, within, {})
    made = Solution(
        name=_line(raw, "name", where),
        definition=_line(raw, "definition", where),
        author=_line(raw, "author", where),
        language=language,
        files=files,
        entry_file=path,
        entry_function=name,
        destination_passing=fields.maybe(spec, "destination_passing_style", bool, within, True),
        cflags=_strings(options, "cflags", f"{within}: compile_options"),
        cuda_cflags=_strings(options, "cuda_cflags", f"{within}: compile_options"),
        ld_flags=_strings(options, "ld_flags", f"{within}: compile_options"),
        target_hardware=_strings(spec, "target_hardware", within),
        dependencies=_strings(spec, "dependencies", within),
    )
    _check_binding(made, fields.maybe(spec, "binding", str, within, ""), "languages" in spec, within)
    return made


def check(solution: Solution, definition: Definition, *, where: str) -> None:
    """Whether ``solution`` is one of ``definition``, and its entry can be called with its inputs.

    Positions decide, as in both harnesses, and names may differ (they do in SOL-ExecBench's own examples). Only a
    parameter with the name of another argument is refused: the call would mix the two up, unseen.

    Raises:
        UserError: what differs, with what was expected and what was found.
    """
    if solution.definition != definition.name:
        raise UserError(
            f"is of definition `{fields.printable(solution.definition)}`, OPERATOR is `{definition.name}`", where=where
        )
    if solution.compiled:
        return  # its entry is a symbol of the built extension
    at = f"{where}: {solution.entry_file}"
    tree = functions.parse(solution.files[solution.entry_file], where=at)
    entry = function(tree, solution.entry_function)
    if entry is None:
        if not binds(tree, solution.entry_function):
            defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            hint = f"it defines {', '.join(defined)}" if defined else "it defines no function"
            raise UserError(f"has no function `{solution.entry_function}`", where=at, hint=hint)
        return  # made by a call, or imported: what it takes shows when it is called
    takes = signature(entry)
    outputs = definition.output_names if solution.destination_passing else ()
    expected = (*definition.input_names, *outputs)
    misplaced = [name for at, name in enumerate(takes.names) if name in expected and expected.index(name) != at]
    if not takes.fits(len(expected)) or misplaced:
        style = "inputs, then outputs (destination_passing_style)" if outputs else "inputs"
        wanted = Signature.listed(expected)
        raise UserError(
            f"`{solution.entry_function}` takes {takes}, expected {wanted}: the definition's {style}",
            where=at,
        )


def _language(spec: Mapping[str, Any], where: str) -> str:
    """The one language that decides how it is built."""
    if "languages" in spec:
        named = _strings(spec, "languages", where)
        where = f"{where}: languages"
    else:
        named = (fields.need(spec, "language", str, where),)
        where = f"{where}: language"
    for name in named:
        if name not in HOSTED:
            raise UserError(f"`{fields.printable(name)}` is not supported", where=where, hint=", ".join(sorted(HOSTED)))
    if not named:
        raise UserError("is empty", where=where)
    if len({name in PYTHON for name in named}) > 1:
        raise UserError(f"mixes Python and C++: {', '.join(named)}", where=where)
    return "triton" if "triton" in named else named[0]


def _files(raw: Sequence[Any], where: str) -> dict[str, str]:
    if len(raw) > FILES_MAX:
        raise UserError(f"has {len(raw)} files, more than {FILES_MAX}", where=where)
    files: dict[str, str] = {}
    for number, each in enumerate(raw):
        at = f"{where}[{number}]"
        record = fields.an(dict, each, at)
        path = _path(fields.need(record, "path", str, at), f"{at}: path")
        if path in files:
            raise UserError(f"`{path}` occurs twice", where=f"{at}: path")
        if "content" not in record:
            raise UserError("has no `content`", where=at)
        files[path] = fields.an(str, record["content"], f"{at}: content")  # an empty __init__.py is a file, too
    for path in files:
        above = next((str(parent) for parent in PurePosixPath(path).parents if str(parent) in files), None)
        if above is not None:
            raise UserError(f"`{above}` is a file and a directory", where=where)
    return files


def _path(text: str, where: str) -> str:
    """``text`` as a normal relative path.

    Raises:
        UserError: absolute, climbing, of another system, or not printable.
    """
    path = PurePosixPath(text)
    if path.is_absolute() or "\\" in text or re.match(r"[A-Za-z]:", text):
        raise UserError(f"`{fields.printable(text)}` is not relative", where=where)
    if ".." in path.parts:
        raise UserError(f"`{fields.printable(text)}` leads out of the solution", where=where)
    if not path.parts or not text.isprintable() or text.endswith("/"):
        raise UserError(f"`{fields.printable(text)}` names no file", where=where)
    return str(path)


def _line(raw: Mapping[str, Any], name: str, where: str) -> str:
    value: str = fields.need(raw, name, str, where)
    fields.one_line(value, f"{where}: {name}")
    return value


def _strings(raw: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    values = fields.maybe(raw, name, list, where, [])
    return tuple(fields.an(str, value, f"{where}: {name}") for value in values)


def _check_binding(made: Solution, binding: str, of_sol: bool, where: str) -> None:
    """C++ reaches Python through torch's extensions; of flashinfer-bench's two bindings the other is TVM's."""
    if not made.compiled:
        if not made.entry_file.endswith(".py"):
            raise UserError(f"`{made.entry_file}` is no Python file", where=f"{where}: entry_point")
        return
    if PurePosixPath(made.entry_file).suffix not in CPP_SUFFIXES:
        raise UserError(f"`{made.entry_file}` is no C++ file", where=f"{where}: entry_point")
    if (binding or (TORCH_BINDING if of_sol else "tvm-ffi")) != TORCH_BINDING:
        said = f"`{fields.printable(binding)}`" if binding else "missing, which means `tvm-ffi`"
        raise UserError(f"is {said}", where=f"{where}: binding", hint="supported: torch")
