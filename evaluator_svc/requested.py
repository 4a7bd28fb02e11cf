"""What a caller asks to be judged, in whichever format it came, as this project's operator and kernel (pure).

Nothing is run and nothing is stored: what is wrong with a request is known before it costs anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator_svc.toolchains.flags import DEFAULT_FLAGS, OPTIMIZED
from shared import operators
from shared.chips import ChipSheet
from shared.errors import OperatorError, UserError
from shared.events import Purpose
from shared.operators import OperatorSpec
from shared.submissions import definition as definitions
from shared.submissions import interface, kernel, operator_text, solution, workload
from shared.submissions.definition import Definition
from shared.submissions.interface import Interface
from shared.submissions.kernel import EMULATED, ENTRIES, NATIVE, Kernel
from shared.submissions.workload import Workload

NAME_CHARS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A definition and one of its workloads, as JSON, and the text of a ``reference.py`` where it has none inline."""

    definition: str
    workload: str
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A kernel and what it is to be judged against. Empty fields are the worker's own choice.

    The operator is ``operator_source`` or ``foreign``, the kernel ``kernel_source`` or ``solution`` (JSON).
    """

    operator_name: str = ""
    operator_source: str = ""
    foreign: Foreign | None = None
    language: str = ""
    kernel_source: str = ""
    solution: str = ""
    flags: tuple[str, ...] = ()
    """Empty: the default ones and those of this machine's best instruction set."""
    entry: str = ""
    """Empty: the language's own. The function to call, of a module that defines no ``ModelNew``."""
    chip: str = ""
    threads: int = 0
    purpose: Purpose = Purpose.SEARCH
    with_ledger: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """What is evaluated: ``operator.source`` and ``kernel.source`` are the texts that the hashes are of."""

    operator: OperatorSpec
    kernel: Kernel
    entry: str
    flags: tuple[str, ...]


def understand(asked: Asked, sheet: ChipSheet, isa_flags: tuple[str, ...]) -> Requested:
    """``asked`` as operator and kernel for ``sheet``; ``isa_flags`` are those of this machine's instruction set.

    Raises:
        UserError: what is wrong with it, with the field that it is in.
        OperatorError: the operator is refused.
    """
    if not asked.operator_name.isprintable() or len(asked.operator_name) > NAME_CHARS_MAX:
        raise UserError(f"is not one line of at most {NAME_CHARS_MAX} characters", where="operator_name")
    if bool(asked.kernel_source.strip()) == bool(asked.solution):
        what = "are both given" if asked.solution else "is empty"
        raise UserError(what, where="kernel_source and solution" if asked.solution else "kernel_source")
    if asked.foreign is not None and asked.operator_source:
        raise UserError("are both given", where="operator_source and definition")
    spec, made, one = _operator(asked)
    chosen = _kernel(asked, spec, made, one, sheet)
    native = chosen.language in (NATIVE, EMULATED)
    if asked.flags and not native:
        raise UserError(f"are for language `{NATIVE}`, this kernel is `{chosen.language}`", where="flags")
    return Requested(
        operator=spec,
        kernel=chosen,
        entry=(asked.entry if native else "") or ENTRIES.get(chosen.language, ""),
        flags=(asked.flags or (*_default_flags(chosen.language), *isa_flags)) if native else (),
    )


def _default_flags(language: str) -> tuple[str, ...]:
    """Of a kernel that comes without any; an emulated chip has one hart, and no OpenMP."""
    return DEFAULT_FLAGS if language == NATIVE else OPTIMIZED


def _operator(asked: Asked) -> tuple[OperatorSpec, Definition | None, Workload | None]:
    if asked.foreign is None:
        if len(asked.operator_source.encode()) > operators.SOURCE_BYTES_MAX:
            raise OperatorError(f"is larger than {operators.SOURCE_BYTES_MAX >> 20} MiB", where="operator_source")
        return operators.parse(asked.operator_source, name=asked.operator_name or "operator"), None, None
    made = definitions.parse(asked.foreign.definition, where="definition", reference=asked.foreign.reference or None)
    one = workload.parse(asked.foreign.workload, made, "definition.workload")
    return operator_text.operator(made, one, _no_file), made, one


def _kernel(
    asked: Asked, spec: OperatorSpec, made: Definition | None, one: Workload | None, sheet: ChipSheet
) -> Kernel:
    called = interface.of_definition(made, one) if made is not None and one is not None else None
    if asked.solution:
        if asked.language or asked.entry:
            raise UserError("says its language and entry itself", where="solution")
        return kernel.of_solution(
            solution.parse(asked.solution, where="solution"), made, called, sheet, where="solution"
        )
    if asked.language not in sheet.languages:
        raise UserError(
            f"is `{asked.language}`", where="language", hint=f"chip `{sheet.id}` takes {', '.join(sheet.languages)}"
        )
    if asked.language not in kernel.HOSTED:
        return Kernel(language=asked.language, source=asked.kernel_source, form=f"{asked.language} source")

    def describe() -> Interface:
        found = called or interface.of_module(spec.source)
        if found is None:
            raise UserError(
                "defines no class `ModelNew`",
                where="kernel_source",
                hint="a module of functions will do for an operator without constructor, or for a definition",
            )
        return found

    entry = "" if asked.entry == ENTRIES[asked.language] else asked.entry
    return kernel.of_text(asked.kernel_source, asked.language, describe, entry, where="kernel_source")


def _no_file(path: str) -> bytes:
    raise OperatorError(f"takes an input from the file `{path}`, and files cannot be sent", where="definition.workload")
