"""The option ``--chip``: an id, or the file of a sheet, which every process of the command then knows."""

from __future__ import annotations

from pathlib import Path

import click

from shared.chips import places
from shared.errors import UserError

HELP = "Target chip: an id of `kernelevolve chips`, or the file of a sheet."
HELP_OF_SEVERAL = f"{HELP} `optimize` takes several: one search for each, in this order."


def chip_ids(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The ids that ``values`` are, or that the sheets there are of, in their order.

    Raises:
        ChipError: there is no such file, or its name is no id.
        UserError: one chip is named twice.
    """
    found = tuple(name for value in values if (name := chip_id(context, parameter, value)) is not None)
    for position, name in enumerate(found):
        if name in found[:position]:
            raise UserError(f"names `{name}` twice", where="--chip")
    return found


def chip_id(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """The id that ``value`` is, or that the sheet at ``value`` is of.

    Raises:
        ChipError: there is no such file, or its name is no id.
    """
    return places.name(Path(value)) if value is not None and value.endswith(places.SUFFIX) else value
