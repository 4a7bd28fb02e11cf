"""A kernel as it is handed in, and the one text of it that is hashed and evaluated (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared.chips import ChipSheet
from shared.errors import UserError
from shared.submissions import bare, fields, functions, module_text, solution
from shared.submissions.definition import Definition
from shared.submissions.functions import binds, imports
from shared.submissions.interface import Interface
from shared.submissions.solution import Solution

NATIVE, EMULATED = "cpp", "c-rvv"
HOSTED = ("python", "triton")
"""Languages of modules that define ``ModelNew``."""
GPU_NATIVE = ("cuda", "hip")
"""Languages of one translation unit for a GPU."""
SUFFIXES = {".cu": "cuda", ".hip": "hip", ".cpp": "cpp", ".cc": "cpp", ".cxx": "cpp", ".c": "c-rvv", ".py": "python"}
ENTRIES = {
    **dict.fromkeys((NATIVE, EMULATED, *GPU_NATIVE), "ke_launch"),
    **dict.fromkeys(HOSTED, bare.CLASS),
}

Describe = Callable[[], Interface]
"""What the operator's kernels are called with; may run its reference, so it is asked only when that is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """``source`` is what is hashed, built and measured. ``form`` says, for people, what was handed in."""

    language: str
    source: str
    form: str

    @property
    def entry(self) -> str:
        return ENTRIES.get(self.language, ENTRIES[NATIVE])


def language_of(text: str, suffix: str, told: str, sheet: ChipSheet, *, where: str) -> str:
    """The language of a kernel's text: as ``told``, else by its suffix, and Triton where a module imports it.

    Raises:
        UserError: it cannot be told, the text is no Python, or the chip does not take it.
    """
    own = {known: name for name, known in sheet.external.suffixes.items()} if sheet.external else {}
    suffixes = SUFFIXES | own
    language = told or suffixes.get(suffix, "")
    if not language:
        raise UserError(f"suffix `{suffix}` tells no language", where=where, hint=f"{', '.join(suffixes)}; --language")
    if not told and language == "python" and imports(functions.parse(text, where=where), "triton"):
        language = "triton"
    check_chip(language, sheet, where=where)
    return language


def check_chip(language: str, sheet: ChipSheet, *, where: str) -> None:
    """Raises ``UserError`` for a language that ``sheet`` lacks."""
    if language not in sheet.languages:
        raise UserError(
            f"is in language `{fields.printable(language)}`",
            where=where,
            hint=f"chip `{sheet.id}` takes {', '.join(sheet.languages)}",
        )


def of_text(text: str, language: str, describe: Describe, entry: str, *, where: str) -> Kernel:
    """The kernel of one text: as it is, or, for a module of functions, with a ``ModelNew`` that calls one.

    Raises:
        UserError: no Python, or no function that could be the operator; see ``bare.entry``.
    """
    if language not in HOSTED:
        if entry:
            raise UserError("is for a module of functions", where="entry", hint=f"language `{language}` has its own")
        return Kernel(language=language, source=text, form=f"{language} source")
    module = functions.parse(text, where=where)
    if binds(module, bare.CLASS) and not entry:
        return Kernel(language=language, source=text, form=f"module with {bare.CLASS}")
    interface = describe()
    name, _ = bare.entry(module, interface, entry, where=where)
    source = module_text.of_functions(text, interface, name, where=where)
    return Kernel(language=language, source=source, form=f"module of functions, called at `{name}`")


def of_solution(
    one: Solution, definition: Definition | None, interface: Interface | None, sheet: ChipSheet, *, where: str
) -> Kernel:
    """The kernel of a solution.

    Raises:
        UserError: the operator is no definition, or another one; see ``solution.check``; the chip has not its language.
    """
    if definition is None or interface is None:
        raise UserError(
            f"is a solution of definition `{one.definition}`, OPERATOR is no definition",
            where=where,
            hint="give the directory or JSON of its definition",
        )
    solution.check(one, definition, where=where)
    check_chip(one.hosted_language, sheet, where=f"{where}: spec")
    source = module_text.of_solution(one, interface)
    return Kernel(language=one.hosted_language, source=source, form=f"solution `{one.name}`, entry {one.entry_point}")
