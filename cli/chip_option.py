"""The option ``--chip``: an id, or the file of a sheet, which every process of the command then knows."""

from __future__ import annotations

from pathlib import Path

import click

from shared.chips import places

HELP = "Target chip: an id of `kernelevolve chips`, or the file of a sheet."


def chip_id(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """The id that ``value`` is, or that the sheet at ``value`` is of.

    Raises:
        ChipError: there is no such file, or its name is no id.
    """
    return places.name(Path(value)) if value is not None and value.endswith(places.SUFFIX) else value
