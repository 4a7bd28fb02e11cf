"""Operators and kernels as files: KernelBench modules, definitions with their workloads, sources, solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli import signature
from shared import operators
from shared.chips import ChipSheet
from shared.dtypes import DType
from shared.errors import OperatorError, UserError
from shared.operators import OperatorSpec
from shared.submissions import definition as definitions
from shared.submissions import fields, interface, kernel, operator_text, solution, workload
from shared.submissions.definition import Definition
from shared.submissions.interface import Interface, Output, State
from shared.submissions.kernel import Kernel
from shared.submissions.workload import Workload

WORKLOADS = ("workload.jsonl", "workloads.jsonl")
DEFINITION, REFERENCE = "definition.json", "reference.py"
TENSORS_BYTES_MAX = 64 << 20
"""Of one safetensors file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An operator to evaluate against; of a definition, it is one of its workloads."""

    spec: OperatorSpec
    definition: Definition | None = None
    workload: Workload | None = None

    @property
    def name(self) -> str:
        """What a trace calls the definition."""
        return self.definition.name if self.definition else self.spec.ref.name

    def interface(self) -> Interface:
        """What its kernels are called with. A KernelBench module is run once when its text does not tell."""
        if self.definition and self.workload:
            return interface.of_definition(self.definition, self.workload)
        return interface.of_module(self.spec.source) or _described(self.spec)


def read_problems(path: Path, uuid: str, workloads: Path | None) -> tuple[Problem, ...]:
    """The operators at ``path``: a KernelBench file, a definition's JSON, or a directory with one.

    Raises:
        UserError: missing or malformed files, or a workload that is not there.
        OperatorError: what cannot be an operator.
    """
    found = path / DEFINITION if path.is_dir() else path
    if found.suffix != ".json":
        if uuid != "all" or workloads is not None:
            raise UserError("is for definitions", where="--workload", hint=f"{path} is a KernelBench module")
        return (Problem(spec=operators.load(path)),)
    if not found.is_file():
        raise OperatorError("no such file", where=str(found), hint="a directory of an operator has a definition.json")
    reference = found.with_name(REFERENCE)
    text = read_text(reference, operators.SOURCE_BYTES_MAX) if reference.is_file() else None
    made = definitions.parse(read_bytes(found, fields.BYTES_MAX), where=str(found), reference=text)
    lines = workloads or _workloads_of(found, made)
    some = workload.parse_lines(read_text(lines, fields.BYTES_MAX), made, str(lines))
    root = _root(found)
    return tuple(
        Problem(
            spec=operator_text.operator(made, one, lambda name: read_within(root, name)), definition=made, workload=one
        )
        for one in workload.choose(some, uuid, str(lines))
    )


def read_operator(path: Path, uuid: str) -> OperatorSpec:
    """The one operator at ``path``: as ``read_problems``, of a definition the workload ``uuid``, or its only one.

    Raises:
        UserError: it has several workloads, and ``uuid`` names none; else as ``read_problems``.
    """
    problems = read_problems(path, uuid or "all", None)
    if len(problems) > 1:
        known = ", ".join(problem.workload.uuid for problem in problems[:3] if problem.workload)
        raise UserError(
            f"has {len(problems)} workloads", where=str(path), hint=f"--workload UUID: a search is for one; {known} …"
        )
    return problems[0].spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A kernel's file, read once. ``name`` is what a trace calls it."""

    name: str
    kernels: tuple[Kernel, ...]
    """One for each operator that it is to be judged against, in their order."""


def read_kernel(
    path: Path, problems: Sequence[Problem], sheet: ChipSheet, *, language: str = "", entry: str = ""
) -> Submitted:
    """The kernel at ``path`` for ``problems``: a source, a module, or a solution's JSON.

    Raises:
        UserError: missing, unreadable, too large, in a language the chip does not take, or no kernel of this operator.
    """
    where = str(path)
    if not path.is_file():
        raise UserError("no such file", where=where, hint="give the path of a kernel's source")
    if path.suffix == ".json":
        if language or entry:
            raise UserError("says its language and entry itself", where=where, hint="leave out --language and --entry")
        one = solution.parse(read_bytes(path, fields.BYTES_MAX), where=where)
        made = (
            kernel.of_solution(
                one, problem.definition, problem.interface() if problem.definition else None, sheet, where=where
            )
            for problem in problems
        )
        return Submitted(name=one.name, kernels=tuple(made))
    text = read_text(path, fields.BYTES_MAX)
    told = kernel.language_of(text, path.suffix, language, sheet, where=where)
    made = (kernel.of_text(text, told, problem.interface, entry, where=where) for problem in problems)
    return Submitted(name=path.name, kernels=tuple(made))


def read_bytes(path: Path, limit: int) -> bytes:
    """Raises ``UserError`` when ``path`` cannot be read or has more than ``limit`` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if len(data) > limit:
        raise UserError(f"is larger than {limit >> 20} MiB", where=str(path))
    return data


def read_text(path: Path, limit: int) -> str:
    """Raises ``UserError``; see ``read_bytes``. Line ends stay as they are."""
    try:
        return read_bytes(path, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"cannot be read: not UTF-8 (byte {error.start})", where=str(path)) from error


def read_within(root: Path, name: str) -> bytes:
    """The file ``name`` under ``root``, which it may not leave.

    Raises:
        OperatorError: it does, or cannot be read.
    """
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise OperatorError(f"`{fields.printable(name)}` leads out of {root}", where=str(root))
    if not path.is_file():
        raise OperatorError(f"there is no file `{fields.printable(name)}`", where=str(root))
    return read_bytes(path, TENSORS_BYTES_MAX)


def _workloads_of(found: Path, made: Definition) -> Path:
    """The definition's workloads: beside it, or where a flashinfer-trace data set has them."""
    beside = [found.with_name(name) for name in WORKLOADS]
    if found.name != DEFINITION:
        beside.append(found.with_suffix(".jsonl"))
    root = _root(found)
    if root != found.parent:
        beside.append(root / "workloads" / found.parent.name / f"{made.name}.jsonl")
    for path in beside:
        if path.is_file():
            return path
    raise UserError(f"there is no {WORKLOADS[0]} beside it", where=str(found), hint="--workloads FILE")


def _root(found: Path) -> Path:
    """What paths in workloads are relative to: the data set of ``definitions/KIND/NAME.json``, else the directory."""
    above: Sequence[Path] = found.absolute().parents
    return above[2] if len(above) > 2 and above[1].name == "definitions" else found.parent


def _described(spec: OperatorSpec) -> Interface:
    said = signature.describe(spec)
    return Interface(
        arguments=tuple(argument.name for argument in said.arguments),
        tensors=tuple(argument.name for argument in said.arguments if argument.tensor is not None),
        outputs=tuple(
            Output(name=f"output_{i}", sizes=tuple(map(str, tensor.shape)), dtype=DType(tensor.dtype))
            for i, tensor in enumerate(said.outputs)
        ),
        state=tuple(
            State(name=each.name, shape=each.tensor.shape, dtype=DType(each.tensor.dtype)) for each in said.state
        ),
        container=said.container,
    )
