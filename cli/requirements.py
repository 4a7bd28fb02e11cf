"""What a command needs of this machine before it begins."""

from __future__ import annotations

from shared import chips
from shared.chips import state
from shared.chips.state import Standing
from shared.errors import ChipError, UserError
from shared.machine import processor


def require_chip(chip_id: str) -> chips.ChipSheet:
    """The chip's sheet, if this machine has what it needs, or can do without the chip by interpreting and modelling.

    Raises:
        ChipError: unknown chip, or a tool is missing; says how to install it.
    """
    sheet = chips.load(chip_id)
    found = state.of(sheet)
    if found.standing is Standing.NONE:
        raise ChipError(f"chip `{chip_id}` has {found}")
    missing = found.missing
    if missing and not sheet.without:
        what = ", ".join(missing)
        raise ChipError(f"chip `{chip_id}` needs {what}, which is not on PATH", hint="; ".join(missing.values()))
    return sheet


def require_language(sheet: chips.ChipSheet, language: str) -> tuple[str, ...]:
    """What kernels may be written in: ``language``, or those of the chip where it is empty.

    Raises:
        UserError: the chip does not take it.
        ChipError: a tool is missing for it; says how to install it.
    """
    if not language:
        return sheet.languages
    if language not in sheet.languages:
        hint = f"chip `{sheet.id}` takes {', '.join(sheet.languages)}"
        raise UserError(f"is `{language}`", where="--language", hint=hint)
    if language in sheet.compile_only and not chips.missing_tools(sheet):
        raise UserError(
            f"is `{language}`, whose kernels are not run on the chip in this version",
            where="--language",
            hint="it is for machines without the chip, where kernels are compiled, emulated and modelled",
        )
    missing = chips.missing_for(sheet, language)
    if missing:
        what = ", ".join(missing)
        raise ChipError(f"language `{language}` needs {what}, which is not on PATH", hint="; ".join(missing.values()))
    return (language,)


def require_threads(threads: int) -> None:
    """Raises ``UserError`` for more threads than this process may use cores, or fewer than one."""
    cores = processor().cores
    if not 1 <= threads <= cores:
        raise UserError(f"{threads} threads asked for, this machine offers 1 to {cores}", where="--threads")
